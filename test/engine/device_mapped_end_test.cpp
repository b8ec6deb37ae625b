// What ends mapped calls early: aborts, ranks that are gone or late, calls that differ. Nobody's memory is touched before all have called
// the same, nor after its rank has ended the call, and nothing behind one that has not ended runs before an abort.
#include <fmt/format.h>

#include <atomic>
#include <future>

#include "test/becomes.h"
#include "test/catch.h"
#include "test/engine/graph_ranks.h"
#include "test/text.h"

using namespace gyre;
using namespace gyre::engine;
using test::contains;
using test::DeviceRank;
using test::run_device_ranks;
using namespace std::chrono_literals;

namespace {

std::vector<std::string> mapped_end_settings(const std::string& deadline = "0") {
  return {"GYRE_TRANSPORT=loopback", "GYRE_SLOT_BYTES=4K", "GYRE_ALGORITHM=two_shot", "GYRE_DEADLINE=" + deadline};
}

std::string mapped_sum(DeviceRank& on) {
  test::DeviceArray<int64_t> data(on, std::vector<int64_t>(10, 1));
  if (const Status given = test::sum(on, data); !given) return given.error().what;
  if (!data.all(on.size())) return "a wrong sum";
  return on.device.given().hand_off == HandOff::mapped ? "" : "not mapped";
}

/// Kernels with a list wait for the test once they have been let go.
class SlowKernels {
 public:
  static inline std::atomic<uint64_t*> flag{nullptr};  // none: they don't

  class Stream final : public test::StreamOver {
   public:
    using StreamOver::StreamOver;
    Status launch(kernels::StepKernel kernel, const kernels::StepArgs& args, unsigned blocks) override {
      const uint64_t* const opens = flag;
      if (args.list != nullptr && opens != nullptr) GYRE_TRY(wait(opens, 1));
      return StreamOver::launch(kernel, args, blocks);
    }
  };
};

struct DifferentMappedCalls {
  const char* what;
  Call mine, theirs;
};

}  // namespace

TEST_CASE("mapped calls that differ are an error on both ranks, which says how, and touch nobody's memory", "[device][mapped]") {
  const Call usual{Collective::all_reduce, 100, DataType::float32, ReduceOp::sum, 0};
  const auto with = [&](auto change) {
    Call call = usual;
    change(call);
    return call;
  };
  for (const auto& [what, mine, theirs] :
       {DifferentMappedCalls{"count=99", usual, with([](Call& c) { c.count = 99; })},
        DifferentMappedCalls{"op=max", usual, with([](Call& c) { c.op = ReduceOp::max; })},
        DifferentMappedCalls{"type=int32", usual, with([](Call& c) { c.type = DataType::int32; })},
        DifferentMappedCalls{"alltoall", usual, with([](Call& c) { c.collective = Collective::all_to_all, c.count = 10; })},
        DifferentMappedCalls{"broadcast", usual, with([](Call& c) { c.collective = Collective::broadcast; })}}) {
    INFO(what);
    CHECK(run_device_ranks(2, mapped_end_settings(), [&, mine = mine, theirs = theirs, what = what](DeviceRank& on) -> std::string {
            if (std::string wrong = mapped_sum(on); !wrong.empty()) return wrong;
            test::DeviceArray<float> data(on, std::vector<float>(200, 3));
            const Call& call = on.rank() == 0 ? mine : theirs;
            const std::string said = test::end_of(on, on.device.enqueue(call, data.data(), data.data() + 100, on.stream.handle()));
            if (call.collective != Collective::all_to_all && !data.all(3)) return "memory was written";
            return contains(said, what) && contains(said, "count=100 ") ? "" : said;
          }) == "");
  }
}

TEST_CASE("an abort ends mapped calls that wait for another rank, and frees the stream", "[device][mapped]") {
  std::atomic<bool> aborted = false;
  CHECK(run_device_ranks(2, mapped_end_settings(), [&](DeviceRank& on) -> std::string {
          if (std::string wrong = mapped_sum(on); !wrong.empty()) return wrong;
          test::DeviceArray<int64_t> data(on, std::vector<int64_t>(5000, 1));
          if (on.rank() == 0) {
            for (int i = 0; i < 3; ++i) {
              if (const Status given = test::sum(on, data); !given) return given.error().what;
            }
            if (on.stream.done_within(50ms)) return "it ended without rank 1";
            on.device.abort("enough");
            aborted = true;
            if (!on.stream.done_within(1s)) return "the stream is not free";
            if (!data.all(1)) return "memory was written";
          } else {
            if (!test::becomes([&] { return aborted.load(); })) return "rank 0 does not abort";
            std::ignore = test::sum(on, data);  // in which it hears of that, at the latest
          }
          const std::string said = test::error_of(on);
          const Status later = test::sum(on, data);
          on.device.abort("the test has seen enough");
          if (!contains(said, "aborted: enough")) return said;
          return !later && contains(later.error().what, "aborted: enough") ? "" : "a later call is not refused";
        }) == "");
}

TEST_CASE("an abort waits for another rank's kernel that works on this rank's memory", "[device][mapped]") {
  const auto gpu = test::TestDevice::open();
  const auto memory = gpu->gpu().allocate_pinned(sizeof(uint64_t));
  REQUIRE(memory);
  auto* const flag = reinterpret_cast<uint64_t*>(memory->get());
  SlowKernels::flag = flag;
  std::atomic<bool> opened = false;
  CHECK(run_device_ranks(2, mapped_end_settings(), [&](DeviceRank& on) -> std::string {
          test::GpuWith<SlowKernels::Stream> slow(on.gpu.gpu());
          auto second = on.rank() == 1 ? test::second_communicator(on, slow) : test::second_communicator(on);
          if (!second) return second.error().what;
          DeviceRank rank{on.host, **second, on.gpu, on.stream};
          test::DeviceArray<int64_t> data(on, std::vector<int64_t>(5000, 1));
          if (!on.stream.done()) return "nothing was copied";
          if (const Status given = test::sum(rank, data); !given) return given.error().what;
          if (on.rank() == 1) {
            const std::string said = test::error_of(rank);
            std::this_thread::sleep_for(100ms);
            opened = true;
            kernels::store_release(flag, 1);
            rank.device.abort("the test has seen enough");
            return contains(said, "aborted: enough") ? "" : said;
          }
          std::this_thread::sleep_for(200ms);  // by then rank 1's kernel has been let go, as a rule, and this one's has ended
          rank.device.abort("enough");
          const bool waited = opened;
          const std::vector<int64_t> then = data.get();
          std::this_thread::sleep_for(100ms);
          if (data.get() != then) return "memory was written after the abort";
          return waited ? "" : "the abort did not wait";
        }) == "");
  SlowKernels::flag = nullptr;
}

TEST_CASE("a stream that comes late to a mapped call that has failed is held, and touches nothing", "[device][mapped]") {
  std::atomic<bool> given = false;
  CHECK(run_device_ranks(2, mapped_end_settings(), [&](DeviceRank& on) -> std::string {
          if (std::string wrong = mapped_sum(on); !wrong.empty()) return wrong;
          test::DeviceArray<int64_t> data(on, std::vector<int64_t>(500, 1));
          std::promise<void> late;
          if (on.rank() == 1) on.stream.add([come = late.get_future().share()] { come.wait(); });
          const Status status = test::sum(on, data);
          if (on.rank() == 1) given = true;
          if (!status) return status.error().what;
          if (on.rank() == 0) {
            if (!test::becomes([&] { return given.load(); })) return "rank 1 does not come";
            std::this_thread::sleep_for(50ms);
            on.device.abort("enough");
            return data.all(1) ? "" : "memory was written";
          }
          const std::string said = test::error_of(on);
          late.set_value();
          const std::string wrong = test::held_until_abort(on);
          if (!data.all(1)) return "memory was written";
          return contains(said, "aborted: enough") ? wrong : said;
        }) == "");
}

TEST_CASE("a rank that leaves ends what others run mapped", "[device][mapped]") {
  CHECK(run_device_ranks(3, mapped_end_settings(), [](DeviceRank& on) -> std::string {
          if (std::string wrong = mapped_sum(on); !wrong.empty()) return wrong;
          if (on.rank() == 2) return {};
          test::DeviceArray<int64_t> data(on, std::vector<int64_t>(500, 1));
          const std::string said = test::end_of(on, test::sum(on, data));
          if (!data.all(1)) return "memory was written";
          return contains(said, "rank 2") ? "" : said;
        }) == "");
}

TEST_CASE("a deadline ends mapped calls, and names the rank that does not come", "[device][mapped]") {
  std::promise<void> over;
  CHECK(run_device_ranks(2, mapped_end_settings("1"), [&](DeviceRank& on) -> std::string {
          if (std::string wrong = mapped_sum(on); !wrong.empty()) return wrong;
          if (on.rank() == 1) return over.get_future().wait(), "";
          test::DeviceArray<int64_t> data(on, std::vector<int64_t>(500, 1));
          const std::string said = test::end_of(on, test::sum(on, data));
          over.set_value();
          return contains(said, "nothing has moved for 1 s") && contains(said, "for rank 1 to come to the call") ? "" : said;
        }) == "");
}

TEST_CASE("mapped, too, a wait for this rank's own stream is no wait for others, however long", "[device][mapped]") {
  const auto until = std::chrono::steady_clock::now() + 2s;  // for both
  CHECK(run_device_ranks(2, mapped_end_settings("1"), [&](DeviceRank& on) -> std::string {
          if (std::string wrong = mapped_sum(on); !wrong.empty()) return wrong;
          test::DeviceArray<int64_t> data(on, std::vector<int64_t>(500, 1));
          on.stream.add([until] { std::this_thread::sleep_until(until); });
          if (const Status given = test::sum(on, data); !given) return given.error().what;
          if (const Status ended = on.device.finish(); !ended) return ended.error().what;
          return data.all(2) ? "" : "a wrong sum";
        }) == "");
}

TEST_CASE("who has finished mapped calls may give back what they were on", "[device][mapped]") {
  CHECK(run_device_ranks(3, mapped_end_settings(), [](DeviceRank& on) -> std::string {
          auto second = test::second_communicator(on);
          if (!second) return second.error().what;
          DeviceRank rank{on.host, **second, on.gpu, on.stream};
          bool right = true;
          for (int i = 0; i < 5 && right; ++i) {
            test::DeviceArray<int64_t> data(on, std::vector<int64_t>(3000, 1));
            if (on.rank() == i % 3) on.stream.add([] { std::this_thread::sleep_for(10ms); });
            if (const Status given = test::sum(rank, data); !given) return given.error().what;
            right = data.all(3);
          }
          if (const Status ended = rank.device.finish(); !ended) return ended.error().what;
          second->reset();
          return right ? "" : "a wrong sum";
        }) == "");
}

TEST_CASE("no kernel is let go once a rank has left, and who leaves knows whose still run", "[mapped]") {
  const auto board = MappedBoard::of(7, 3);
  CHECK(MappedBoard::of(7, 3) == board);
  CHECK(MappedBoard::of(8, 3) != board);
  const auto ended = std::make_shared<uint64_t>(4);
  CHECK(board->begin(1, ended, 5));
  CHECK(board->busy(0));
  CHECK_FALSE(board->busy(1));
  board->leave();
  CHECK_FALSE(board->begin(2, ended, 9));
  *ended = 5;
  CHECK_FALSE(board->busy(0));
}
