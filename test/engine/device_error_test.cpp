// What ends collectives on a device early: aborts, ranks that are gone, calls that differ, deadlines. The user's stream goes on after an
// abort, and after nothing else.
#include <fmt/format.h>

#include <atomic>
#include <future>
#include <span>
#include <tuple>

#include "test/becomes.h"
#include "test/catch.h"
#include "test/engine/device_ranks.h"
#include "test/text.h"

using namespace gyre;
using namespace gyre::engine;
using test::contains;
using test::DeviceRank;
using test::run_device_ranks;
using namespace std::chrono_literals;

namespace {

const std::vector<std::string> settings_of_errors{"GYRE_TRANSPORT=loopback", "GYRE_SLOT_BYTES=4K"};

Call sum_of(size_t count) { return {Collective::all_reduce, count, DataType::float32, ReduceOp::sum, 0}; }

}  // namespace

TEST_CASE("an abort ends what runs on a device and frees the stream", "[device]") {
  for (const test::Way& way : test::every_way) {
    std::atomic<bool> aborted = false;
    CHECK(run_device_ranks(
              2, settings_of_errors,
              [&](DeviceRank& on) -> std::string {
                test::DeviceArray<float> data(on, std::vector<float>(50000, 1));
                const auto reduce = [&] {
                  return on.device.enqueue(sum_of(data.size()), data.data(), data.data(), on.stream.handle(), way.hand_off);
                };
                if (on.rank() == 0) {
                  for (int i = 0; i < 3; ++i) {
                    if (Status status = reduce(); !status) return status.error().what;
                  }
                  if (on.stream.done_within(50ms)) return "it ended without rank 1";
                  on.device.abort("enough");
                  aborted = true;
                  if (!on.stream.done_within(1s)) return "the stream is not free";
                } else {
                  if (!test::becomes([&] { return aborted.load(); })) return "rank 0 does not abort";
                  std::ignore = reduce();  // in which it hears of that, at the latest
                }
                const std::string said = test::error_of(on);
                const Status later = reduce();
                on.device.abort("the test has seen enough");
                if (!contains(said, "aborted: enough")) return said;
                return !later && contains(later.error().what, "aborted: enough") ? "" : "a later call is not refused";
              },
              way.reach) == "");
  }
}

TEST_CASE("an error holds a stream that comes late to messages which had all arrived", "[device]") {
  for (const test::Way& way : test::every_way) {
    std::atomic<bool> given = false;  // by the rank that comes late
    CHECK(run_device_ranks(
              2, settings_of_errors,
              [&](DeviceRank& on) -> std::string {
                test::DeviceArray<float> data(on, std::vector<float>(500, 1));
                std::promise<void> late;
                if (on.rank() == 1) on.stream.add([come = late.get_future().share()] { come.wait(); });
                const Call call{Collective::broadcast, data.size(), DataType::float32, ReduceOp::sum, 0};
                const Status status = on.device.enqueue(call, data.data(), data.data(), on.stream.handle(), way.hand_off);
                if (on.rank() == 1) given = true;
                if (!status) return status.error().what;
                if (on.rank() == 0) {
                  if (!on.stream.done()) return "the root's stream does not end";
                  if (!test::becomes([&] { return given.load(); })) return "rank 1 does not come";
                  std::this_thread::sleep_for(100ms);  // as a rule all has arrived by then; what is tested holds in any case
                  return on.device.abort("enough"), "";
                }
                const std::string said = test::error_of(on);
                late.set_value();
                const std::string wrong = test::held_until_abort(on);
                return contains(said, "aborted: enough") ? wrong : said;
              },
              way.reach) == "");
  }
}

TEST_CASE("a rank that leaves ends what others run on a device", "[device]") {
  for (const test::Way& way : std::span(test::every_way).last(2)) {
    CHECK(run_device_ranks(
              3, settings_of_errors,
              [&](DeviceRank& on) -> std::string {
                if (on.rank() == 2) return {};
                test::DeviceArray<float> data(on, std::vector<float>(50000, 1));
                const std::string said =
                    test::end_of(on, on.device.enqueue(sum_of(data.size()), data.data(), data.data(), on.stream.handle(), way.hand_off));
                return contains(said, "rank 2") ? "" : said;
              },
              way.reach) == "");
  }
}

TEST_CASE("calls on a device that differ are an error on both ranks, which says how", "[device]") {
  for (const test::Way& way : test::every_way) {
    CHECK(run_device_ranks(
              2, settings_of_errors,
              [&](DeviceRank& on) -> std::string {
                test::DeviceArray<float> data(on, std::vector<float>(50000, 1));
                const size_t count = on.rank() == 0 ? 50000 : 49999;
                const std::string said =
                    test::end_of(on, on.device.enqueue(sum_of(count), data.data(), data.data(), on.stream.handle(), way.hand_off));
                return contains(said, "count=50000") && contains(said, "count=49999") ? "" : said;
              },
              way.reach) == "");
  }
}

TEST_CASE("a deadline ends a collective on a device, and names rank and step", "[device]") {
  auto limited = settings_of_errors;
  limited.emplace_back("GYRE_DEADLINE=1");
  for (const test::Way& way : std::span(test::every_way).first(2)) {
    std::promise<void> over;
    CHECK(run_device_ranks(
              2, limited,
              [&](DeviceRank& on) -> std::string {
                test::DeviceArray<float> data(on, std::vector<float>(50000, 1));
                if (on.rank() == 1) return over.get_future().wait(), "";
                const std::string said =
                    test::end_of(on, on.device.enqueue(sum_of(data.size()), data.data(), data.data(), on.stream.handle(), way.hand_off));
                over.set_value();
                return contains(said, "nothing has moved for 1 s") && contains(said, "for rank 1 in step") ? "" : said;
              },
              way.reach) == "");
  }
}

TEST_CASE("a deadline names the rank that has not read what lies on the GPU for it", "[device]") {
  auto limited = settings_of_errors;
  limited.emplace_back("GYRE_DEADLINE=1");
  std::atomic<bool> over = false;
  CHECK(run_device_ranks(2, limited, [&](DeviceRank& on) -> std::string {
          if (on.rank() == 1) {
            while (!over) std::this_thread::yield();
            return {};
          }
          test::DeviceArray<float> data(on, std::vector<float>(100, 1));
          const Call call{Collective::broadcast, data.size(), DataType::float32, ReduceOp::sum, 0};
          const Status status = on.device.enqueue(call, data.data(), data.data(), on.stream.handle());
          const std::string said = status ? test::error_of(on) : status.error().what;
          over = true;
          if (!on.stream.done_within(1s)) return "what the GPU had finished holds the stream";
          return contains(said, "nothing has moved for 1 s") && contains(said, "for rank 1 to read its last messages") ? "" : said;
        }) == "");
}

TEST_CASE("a call with wrong arguments is refused on a device, and the next one runs", "[device]") {
  CHECK(run_device_ranks(2, settings_of_errors, [&](DeviceRank& on) -> std::string {
          test::DeviceArray<float> data(on, std::vector<float>(100, 1));
          if (on.device.enqueue(sum_of(100), nullptr, data.data(), on.stream.handle())) return "null was taken";
          if (on.device.enqueue(sum_of(100), data.data(), data.data() + 1, on.stream.handle())) return "an overlap was taken";
          if (Status status = on.device.enqueue(sum_of(100), data.data(), data.data(), on.stream.handle()); !status)
            return status.error().what;
          if (Status status = on.device.finish(); !status) return status.error().what;
          return data.all(2) ? "" : "no sum";
        }) == "");
}

TEST_CASE("more collectives than a stream holds are given without waiting for any of them", "[device]") {
  for (const test::Way& way : test::every_way) {
    CHECK(run_device_ranks(
              2, settings_of_errors,
              [&](DeviceRank& on) -> std::string {
                constexpr int calls = 400;
                test::DeviceArray<int> data(on, std::vector<int>(100, 0));
                const Call call{Collective::all_reduce, data.size(), DataType::int32, ReduceOp::max, 0};
                for (int i = 0; i < calls; ++i) {
                  if (Status status = on.device.enqueue(call, data.data(), data.data(), on.stream.handle(), way.hand_off); !status)
                    return status.error().what;
                }
                if (Status status = on.device.finish(); !status) return status.error().what;
                return data.all(0) ? "" : "a wrong result";
              },
              way.reach) == "");
  }
}

TEST_CASE("a wait for this rank's own stream is no wait for others, however long", "[device]") {
  auto limited = settings_of_errors;
  limited.emplace_back("GYRE_DEADLINE=1");
  limited.emplace_back("GYRE_ALGORITHM=ring");  // in which every rank begins with a kernel of its own
  std::atomic<int> called = 0;
  std::promise<std::chrono::steady_clock::time_point> chosen;
  const auto until = chosen.get_future().share();  // for both: CUDA runs what it calls on the host one after another
  CHECK(run_device_ranks(2, limited, [&](DeviceRank& on) -> std::string {
          test::DeviceArray<float> data(on, std::vector<float>(100, 1));
          on.stream.add([until] { std::this_thread::sleep_until(until.get()); });
          const Status given = on.device.enqueue(sum_of(100), data.data(), data.data(), on.stream.handle());
          if (++called == on.size()) chosen.set_value(std::chrono::steady_clock::now() + 1500ms);
          if (!given) return given.error().what;
          if (Status status = on.device.finish(); !status) return status.error().what;
          return data.all(2) ? "" : "a wrong sum";
        }) == "");
}

TEST_CASE("one thread gives all ranks their collectives, before any of them can move", "[device]") {
  for (const char* algorithm : {"auto", "ring"}) {
    auto settings = settings_of_errors;
    settings.push_back(std::string("GYRE_ALGORITHM=") + algorithm);
    CHECK(test::given_by_one_thread(4, settings, [](const std::vector<DeviceRank*>& all) -> std::string {
            for (const size_t count : {size_t{1000}, size_t{300'000}}) {
              std::vector<test::DeviceArray<float>> data;
              for (DeviceRank* on : all) data.emplace_back(*on, std::vector<float>(count, 1));
              for (size_t r = 0; r < all.size(); ++r) {
                for (int i = 0; i < 3; ++i) {
                  const Status status = all[r]->device.enqueue(sum_of(count), data[r].data(), data[r].data(), all[r]->stream.handle());
                  if (!status) return status.error().what;
                }
              }
              if (!std::all_of(data.begin(), data.end(), [](auto& sum) { return sum.all(64); })) return "a wrong sum";
            }
            return {};
          }) == "");
  }
}

// Of which only the first and the last elements are looked at. For a GPU with room for it.
TEST_CASE("one thread gives 4 ranks an all-reduce of 4 GiB each, before any of them can move", "[.4GiB]") {
  constexpr size_t count = size_t{1} << 30, looked_at = 1000;
  for (const std::string algorithm : {"auto", "ring"}) {
    CHECK(test::given_by_one_thread(
              4, {"GYRE_TRANSPORT=loopback", "GYRE_ALGORITHM=" + algorithm}, [](const std::vector<DeviceRank*>& all) -> std::string {
                const std::vector<float> ones(looked_at, 1), sums(looked_at, 4);
                std::vector<kernels::GpuMemory> memory;
                for (DeviceRank* on : all) {
                  auto taken = on->gpu.gpu().allocate(count * sizeof(float));
                  if (!taken) return taken.error().what;
                  auto* const data = reinterpret_cast<float*>(memory.emplace_back(*std::move(taken)).get());
                  for (float* at : {data, data + count - looked_at}) on->stream.copy(at, ones.data(), looked_at * sizeof(float));
                }
                for (size_t r = 0; r < all.size(); ++r) {
                  const Status status = all[r]->device.enqueue(sum_of(count), memory[r].get(), memory[r].get(), all[r]->stream.handle());
                  if (!status) return status.error().what;
                }
                std::vector<float> seen(looked_at);
                for (size_t r = 0; r < all.size(); ++r) {
                  if (!all[r]->stream.done()) return "a stream does not end";
                  auto* const data = reinterpret_cast<float*>(memory[r].get());
                  for (float* at : {data, data + count - looked_at}) {
                    all[r]->stream.copy(seen.data(), at, looked_at * sizeof(float));
                    if (!all[r]->stream.done() || seen != sums) return "a wrong sum";
                  }
                }
                return {};
              }) == "");
  }
}
