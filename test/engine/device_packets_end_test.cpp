// What ends calls by packets early: aborts, ranks that are gone or late, calls that differ. Nobody takes a sum of another call for his,
// and nothing behind one that has not ended runs before an abort.
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

std::vector<std::string> packet_end_settings(const std::string& deadline = "0") {
  return {"GYRE_TRANSPORT=loopback", "GYRE_SLOT_BYTES=64K", "GYRE_ALGORITHM=one_shot", "GYRE_DEADLINE=" + deadline};
}

std::string small_call(DeviceRank& on) {
  test::DeviceArray<int64_t> data(on, std::vector<int64_t>(10, 1));
  if (const Status given = test::sum(on, data); !given) return given.error().what;
  return data.all(on.size()) ? "" : "a wrong sum";
}

/// By whoever has done so before: the second that can go by packets.
std::string ready_for_packets(DeviceRank& on) {
  for (int i = 0; i < 2; ++i) {
    if (std::string wrong = small_call(on); !wrong.empty()) return wrong;
  }
  return on.device.given().hand_off == HandOff::packets ? "" : "not by packets";
}

struct DifferentCalls {
  const char* what;
  Call mine, theirs;
};

}  // namespace

TEST_CASE("calls by packets that differ are an error on both ranks, which says how, and no sum", "[device][packets]") {
  const Call usual{Collective::all_reduce, 100, DataType::float32, ReduceOp::sum, 0};
  const auto with = [&](auto change) {
    Call call = usual;
    change(call);
    return call;
  };
  for (const auto& [what, mine, theirs] :
       {DifferentCalls{"count=99", usual, with([](Call& c) { c.count = 99; })},
        DifferentCalls{"count=7", usual, with([](Call& c) { c.count = 7; })},
        DifferentCalls{"op=max", usual, with([](Call& c) { c.op = ReduceOp::max; })},
        DifferentCalls{"type=int32", usual, with([](Call& c) { c.type = DataType::int32; })},
        DifferentCalls{"count=50000", usual, with([](Call& c) { c.count = 50000; })},
        DifferentCalls{"broadcast", usual, with([](Call& c) { c.collective = Collective::broadcast; })}}) {
    INFO(what);
    CHECK(run_device_ranks(2, packet_end_settings(), [&, mine = mine, theirs = theirs, what = what](DeviceRank& on) -> std::string {
            if (std::string wrong = ready_for_packets(on); !wrong.empty()) return wrong;
            test::DeviceArray<float> data(on, std::vector<float>(50000, 1));
            const Call& call = on.rank() == 0 ? mine : theirs;
            const std::string said = test::end_of(on, on.device.enqueue(call, data.data(), data.data(), on.stream.handle()));
            return contains(said, what) && contains(said, "count=100 ") ? "" : said;
          }) == "");
  }
}

TEST_CASE("an abort ends calls by packets that wait for another rank, and frees the stream", "[device][packets]") {
  std::atomic<bool> aborted = false;
  CHECK(run_device_ranks(2, packet_end_settings(), [&](DeviceRank& on) -> std::string {
          if (std::string wrong = ready_for_packets(on); !wrong.empty()) return wrong;
          test::DeviceArray<int64_t> data(on, std::vector<int64_t>(5000, 1));
          if (on.rank() == 0) {
            for (int i = 0; i < 3; ++i) {
              if (const Status given = test::sum(on, data); !given) return given.error().what;
            }
            if (on.stream.done_within(50ms)) return "it ended without rank 1";
            on.device.abort("enough");
            aborted = true;
            if (!on.stream.done_within(1s)) return "the stream is not free";
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

TEST_CASE("an error frees a caller that waits until fewer calls by packets are under way", "[device][packets]") {
  std::atomic<uint64_t> given = 0;
  CHECK(run_device_ranks(2, packet_end_settings(), [&](DeviceRank& on) -> std::string {
          if (std::string wrong = ready_for_packets(on); !wrong.empty()) return wrong;
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

TEST_CASE("an error holds a stream that comes late to packets which are all there", "[device][packets]") {
  std::atomic<bool> given = false;
  CHECK(run_device_ranks(2, packet_end_settings(), [&](DeviceRank& on) -> std::string {
          if (std::string wrong = ready_for_packets(on); !wrong.empty()) return wrong;
          test::DeviceArray<int64_t> data(on, std::vector<int64_t>(500, 1));
          std::promise<void> late;
          if (on.rank() == 1) on.stream.add([come = late.get_future().share()] { come.wait(); });
          const Status status = test::sum(on, data);
          if (on.rank() == 1) given = true;
          if (!status) return status.error().what;
          if (on.rank() == 0) {
            if (!test::becomes([&] { return given.load(); })) return "rank 1 does not come";
            std::this_thread::sleep_for(100ms);  // as a rule its packets are all there by then
            return on.device.abort("enough"), "";
          }
          const std::string said = test::error_of(on);
          late.set_value();
          const std::string wrong = test::held_until_abort(on);
          return contains(said, "aborted: enough") ? wrong : said;
        }) == "");
}

TEST_CASE("a rank that leaves ends what others run by packets", "[device][packets]") {
  CHECK(run_device_ranks(3, packet_end_settings(), [](DeviceRank& on) -> std::string {
          if (std::string wrong = ready_for_packets(on); !wrong.empty()) return wrong;
          if (on.rank() == 2) return {};
          test::DeviceArray<int64_t> data(on, std::vector<int64_t>(500, 1));
          const std::string said = test::end_of(on, test::sum(on, data));
          return contains(said, "rank 2") ? "" : said;
        }) == "");
}

TEST_CASE("a deadline ends calls by packets, and names the rank that does not come", "[device][packets]") {
  std::promise<void> over;
  CHECK(run_device_ranks(2, packet_end_settings("1"), [&](DeviceRank& on) -> std::string {
          if (std::string wrong = ready_for_packets(on); !wrong.empty()) return wrong;
          if (on.rank() == 1) return over.get_future().wait(), "";
          test::DeviceArray<int64_t> data(on, std::vector<int64_t>(500, 1));
          const std::string said = test::end_of(on, test::sum(on, data));
          over.set_value();
          return contains(said, "nothing has moved for 1 s") && contains(said, "for rank 1's packets") ? "" : said;
        }) == "");
}

TEST_CASE("by packets, too, a wait for this rank's own stream is no wait for others, however long", "[device][packets]") {
  const auto until = std::chrono::steady_clock::now() + 2s;  // for both
  CHECK(run_device_ranks(2, packet_end_settings("1"), [&](DeviceRank& on) -> std::string {
          if (std::string wrong = ready_for_packets(on); !wrong.empty()) return wrong;
          test::DeviceArray<int64_t> data(on, std::vector<int64_t>(500, 1));
          on.stream.add([until] { std::this_thread::sleep_until(until); });
          if (const Status given = test::sum(on, data); !given) return given.error().what;
          if (const Status ended = on.device.finish(); !ended) return ended.error().what;
          return data.all(2) ? "" : "a wrong sum";
        }) == "");
}

TEST_CASE("who has finished has left nothing that another rank still waits for or reads", "[device][packets]") {
  CHECK(run_device_ranks(3, packet_end_settings(), [](DeviceRank& on) -> std::string {
          if (std::string wrong = ready_for_packets(on); !wrong.empty()) return wrong;
          test::DeviceArray<int64_t> data(on, std::vector<int64_t>(3000, 1));
          auto second = test::second_communicator(on);
          if (!second) return second.error().what;
          DeviceRank rank{on.host, **second, on.gpu, on.stream};
          if (std::string wrong = ready_for_packets(rank); !wrong.empty()) return wrong;
          if (on.rank() == 1) on.stream.add([] { std::this_thread::sleep_for(100ms); });
          if (const Status given = test::sum(rank, data); !given) return given.error().what;
          if (const Status ended = rank.device.finish(); !ended) return ended.error().what;
          second->reset();
          return data.all(3) ? "" : "a wrong sum";
        }) == "");
}
