// What ends calls early that are one kernel on each rank, by packets or mapped: aborts, ranks that are gone or late, calls that differ.
// Nobody takes a sum of another call for his, nobody's memory is touched by mapped ones before all have called the same, nor after its rank
// has ended the call, and nothing behind one that has not ended runs before an abort.
#include <fmt/format.h>

#include <array>
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

struct OneKernel {
  HandOff hand_off;
  const char* slot_bytes;
  const char* algorithm;
  const char* awaits;  ///< what an error says of rank 1 that does not come
};
constexpr OneKernel by_packets{HandOff::packets, "64K", "one_shot", "for rank 1's packets"};
constexpr OneKernel by_mapping{HandOff::mapped, "4K", "two_shot", "for rank 1 to come to the call"};
constexpr std::array both_kernels{by_packets, by_mapping};

std::vector<std::string> settings_of(const OneKernel& way, const std::string& deadline = "0") {
  return {"GYRE_TRANSPORT=loopback", std::string("GYRE_SLOT_BYTES=") + way.slot_bytes, std::string("GYRE_ALGORITHM=") + way.algorithm,
          "GYRE_DEADLINE=" + deadline};
}

/// After two calls, of which the second can go by packets.
std::string ready(DeviceRank& on, const OneKernel& way) {
  for (int i = 0; i < 2; ++i) {
    test::DeviceArray<int64_t> data(on, std::vector<int64_t>(10, 1));
    if (const Status given = test::sum(on, data); !given) return given.error().what;
    if (!data.all(on.size())) return "a wrong sum";
  }
  return on.device.given().hand_off == way.hand_off ? "" : "it goes another way";
}

/// Of a call that has not finished.
template <class T>
bool written(const OneKernel& way, test::DeviceArray<T>& data, T before) {
  return way.hand_off == HandOff::mapped && !data.all(before);
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

struct Different {
  const char* what;
  Call theirs;
};

}  // namespace

TEST_CASE("calls of one kernel that differ are an error on both ranks, which says how, and no sum", "[device][packets][mapped]") {
  const Call usual{Collective::all_reduce, 100, DataType::float32, ReduceOp::sum, 0};
  const auto with = [&](auto change) {
    Call call = usual;
    change(call);
    return call;
  };
  const OneKernel way = GENERATE(from_range(both_kernels));
  for (const auto& [what, theirs] :
       {Different{"count=99", with([](Call& c) { c.count = 99; })}, Different{"count=7", with([](Call& c) { c.count = 7; })},
        Different{"op=max", with([](Call& c) { c.op = ReduceOp::max; })},
        Different{"type=int32", with([](Call& c) { c.type = DataType::int32; })},
        Different{"count=50000", with([](Call& c) { c.count = 50000; })},
        Different{"alltoall", with([](Call& c) { c.collective = Collective::all_to_all, c.count = 10; })},
        Different{"broadcast", with([](Call& c) { c.collective = Collective::broadcast; })}}) {
    INFO(what << ", " << way.algorithm);
    CHECK(run_device_ranks(2, settings_of(way), [&, theirs = theirs, what = what](DeviceRank& on) -> std::string {
            if (std::string wrong = ready(on, way); !wrong.empty()) return wrong;
            test::DeviceArray<float> data(on, std::vector<float>(100000, 3));
            const Call& call = on.rank() == 0 ? usual : theirs;
            const std::string said = test::end_of(on, on.device.enqueue(call, data.data(), data.data() + 50000, on.stream.handle()));
            if (call.collective != Collective::all_to_all && written(way, data, 3.0F)) return "memory was written";
            return contains(said, what) && contains(said, "count=100 ") ? "" : said;
          }) == "");
  }
}

TEST_CASE("an abort ends calls of one kernel that wait for another rank, and frees the stream", "[device][packets][mapped]") {
  const OneKernel way = GENERATE(from_range(both_kernels));
  INFO(way.algorithm);
  std::atomic<bool> aborted = false;
  CHECK(run_device_ranks(2, settings_of(way), [&](DeviceRank& on) -> std::string {
          if (std::string wrong = ready(on, way); !wrong.empty()) return wrong;
          test::DeviceArray<int64_t> data(on, std::vector<int64_t>(5000, 1));
          if (on.rank() == 0) {
            for (int i = 0; i < 3; ++i) {
              if (const Status given = test::sum(on, data); !given) return given.error().what;
            }
            if (on.stream.done_within(50ms)) return "it ended without rank 1";
            on.device.abort("enough");
            aborted = true;
            if (!on.stream.done_within(1s)) return "the stream is not free";
            if (written(way, data, int64_t{1})) return "memory was written";
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

TEST_CASE("a stream that comes late to a call of one kernel that has failed is held", "[device][packets][mapped]") {
  const OneKernel way = GENERATE(from_range(both_kernels));
  INFO(way.algorithm);
  std::atomic<bool> given = false;
  CHECK(run_device_ranks(2, settings_of(way), [&](DeviceRank& on) -> std::string {
          if (std::string wrong = ready(on, way); !wrong.empty()) return wrong;
          test::DeviceArray<int64_t> data(on, std::vector<int64_t>(500, 1));
          std::promise<void> late;
          if (on.rank() == 1) on.stream.add([come = late.get_future().share()] { come.wait(); });
          const Status status = test::sum(on, data);
          if (on.rank() == 1) given = true;
          if (!status) return status.error().what;
          if (on.rank() == 0) {
            if (!test::becomes([&] { return given.load(); })) return "rank 1 does not come";
            std::this_thread::sleep_for(100ms);  // as a rule packets are all there by then
            on.device.abort("enough");
            return written(way, data, int64_t{1}) ? "memory was written" : "";
          }
          const std::string said = test::error_of(on);
          late.set_value();
          const std::string wrong = test::held_until_abort(on);
          if (written(way, data, int64_t{1})) return "memory was written";
          return contains(said, "aborted: enough") ? wrong : said;
        }) == "");
}

TEST_CASE("a rank that leaves ends what others run by one kernel", "[device][packets][mapped]") {
  const OneKernel way = GENERATE(from_range(both_kernels));
  INFO(way.algorithm);
  CHECK(run_device_ranks(3, settings_of(way), [&](DeviceRank& on) -> std::string {
          if (std::string wrong = ready(on, way); !wrong.empty()) return wrong;
          if (on.rank() == 2) return {};
          test::DeviceArray<int64_t> data(on, std::vector<int64_t>(500, 1));
          const std::string said = test::end_of(on, test::sum(on, data));
          if (written(way, data, int64_t{1})) return "memory was written";
          return contains(said, "rank 2") ? "" : said;
        }) == "");
}

TEST_CASE("a deadline ends calls of one kernel, and names the rank that does not come", "[device][packets][mapped]") {
  const OneKernel way = GENERATE(from_range(both_kernels));
  INFO(way.algorithm);
  std::promise<void> over;
  CHECK(run_device_ranks(2, settings_of(way, "1"), [&](DeviceRank& on) -> std::string {
          if (std::string wrong = ready(on, way); !wrong.empty()) return wrong;
          if (on.rank() == 1) return over.get_future().wait(), "";
          test::DeviceArray<int64_t> data(on, std::vector<int64_t>(500, 1));
          const std::string said = test::end_of(on, test::sum(on, data));
          over.set_value();
          return contains(said, "nothing has moved for 1 s") && contains(said, way.awaits) ? "" : said;
        }) == "");
}

TEST_CASE("by one kernel, too, a wait for this rank's own stream is no wait for others, however long", "[device][packets][mapped]") {
  const OneKernel way = GENERATE(from_range(both_kernels));
  INFO(way.algorithm);
  const auto until = std::chrono::steady_clock::now() + 2s;  // for both
  CHECK(run_device_ranks(2, settings_of(way, "1"), [&](DeviceRank& on) -> std::string {
          if (std::string wrong = ready(on, way); !wrong.empty()) return wrong;
          test::DeviceArray<int64_t> data(on, std::vector<int64_t>(500, 1));
          on.stream.add([until] { std::this_thread::sleep_until(until); });
          if (const Status given = test::sum(on, data); !given) return given.error().what;
          if (const Status ended = on.device.finish(); !ended) return ended.error().what;
          return data.all(2) ? "" : "a wrong sum";
        }) == "");
}

TEST_CASE("who has finished has left nothing that another rank still waits for or works on", "[device][packets][mapped]") {
  const OneKernel way = GENERATE(from_range(both_kernels));
  INFO(way.algorithm);
  CHECK(run_device_ranks(3, settings_of(way), [&](DeviceRank& on) -> std::string {
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
          const HandOff hand_off = rank.device.given().hand_off;
          second->reset();
          if (!right) return "a wrong sum";
          return hand_off == way.hand_off ? "" : "it went another way";
        }) == "");
}

TEST_CASE("an error frees a caller that waits until fewer calls by packets are under way", "[device][packets]") {
  std::atomic<uint64_t> given = 0;
  CHECK(run_device_ranks(2, settings_of(by_packets), [&](DeviceRank& on) -> std::string {
          if (std::string wrong = ready(on, by_packets); !wrong.empty()) return wrong;
          test::DeviceArray<int64_t> data(on, std::vector<int64_t>(5, 1));
          if (on.rank() == 1) {
            if (!test::becomes([&] { return given >= DeviceCommunicator::most_ahead; })) return "rank 0 does not call so often";
            std::this_thread::sleep_for(20ms);  // by then it waits
            return on.device.abort("enough"), "";
          }
          Status status = test::sum(on, data);
          for (; status; status = test::sum(on, data)) ++given;
          on.device.abort("the test has seen enough");
          return contains(status.error().what, "aborted: enough") ? "" : status.error().what;
        }) == "");
}

TEST_CASE("an abort waits for another rank's kernel that works on this rank's memory", "[device][mapped]") {
  const auto gpu = test::TestDevice::open();
  const auto memory = gpu->gpu().allocate_pinned(sizeof(uint64_t));
  REQUIRE(memory);
  auto* const flag = reinterpret_cast<uint64_t*>(memory->get());
  SlowKernels::flag = flag;
  std::atomic<bool> opened = false;
  CHECK(run_device_ranks(2, settings_of(by_mapping), [&](DeviceRank& on) -> std::string {
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
