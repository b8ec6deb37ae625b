// Messages between ranks of a host that are read where they lie, in the shared heap.
#include <fmt/format.h>
#include <sched.h>

#include "engine/communicator.h"
#include "test/catch.h"
#include "test/engine/heap_allocator.h"
#include "test/engine/job_memory.h"
#include "test/mappings.h"
#include "test/ranks.h"
#include "test/slow_builds.h"
#include "topo/algorithms.h"

using namespace gyre;
using namespace gyre::engine;

namespace {

std::string checked_in_heap(Communicator& communicator, const Call& call, bool in_place) {
  test::JobMemory<int32_t, test::HeapAllocator<int32_t>> memory(call, communicator.size(), in_place);
  const Buffers buffers = memory.buffers(communicator.rank());
  const Status status = communicator.run(call, buffers.input, buffers.output);
  const std::string wrong = status ? memory.wrong(communicator.rank()) : status.error().what;
  if (wrong.empty()) return {};
  return fmt::format("{}, root {}{}: {}", name(call.collective), call.root, in_place ? ", in place" : "", wrong);
}

std::string all_in_heap(Communicator& communicator) {
  std::string wrong;
  for (const Collective collective : all_collectives()) {
    const Rank root = rooted(collective) ? communicator.size() - 1 : 0;
    const Call call{collective, 70'000, DataType::int32, ReduceOp::sum, root};
    if (wrong.empty()) wrong = checked_in_heap(communicator, call, false);
    if (wrong.empty() && collective != Collective::all_to_all) wrong = checked_in_heap(communicator, call, true);
  }
  return wrong;
}

/// Ranks of `per_host` on each host, dealt to them in order.
test::RankConfig on_hosts(int per_host, const std::string& algorithm, const std::string& numerics) {
  return [=](Rank rank) {
    return test::configured(
        {"GYRE_ALGORITHM=" + algorithm, "GYRE_NUMERICS=" + numerics, fmt::format("GYRE_HOSTID=host{}", rank / per_host)});
  };
}

/// This thread and those that it starts, on one processor: ranks that share one write no messages past its caches, but lend them.
class OnOneProcessor {
 public:
  OnOneProcessor() {
    sched_getaffinity(0, sizeof before_, &before_);
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(static_cast<size_t>(sched_getcpu()), &one);
    sched_setaffinity(0, sizeof one, &one);
  }
  ~OnOneProcessor() { sched_setaffinity(0, sizeof before_, &before_); }
  OnOneProcessor(const OnOneProcessor&) = delete;
  OnOneProcessor& operator=(const OnOneProcessor&) = delete;

 private:
  cpu_set_t before_{};
};

}  // namespace

TEST_CASE("every collective is right where messages of a host are read from the shared heap", "[transport]") {
  const OnOneProcessor crowded;
  std::vector<std::string> algorithms{"auto"};
  for (const auto& family : topo::families()) algorithms.emplace_back(family.name);
  for (const std::string& algorithm : test::sampled(algorithms, 2)) {
    INFO(algorithm);
    CHECK(test::first_wrong(test::run_ranks(4, on_hosts(2, algorithm, "default"), all_in_heap)) == "");
    CHECK(test::first_wrong(test::run_ranks(3, on_hosts(3, algorithm, "ordered"), all_in_heap)) == "");
  }
}

TEST_CASE("a message of the shared heap is read by its receiver where it lies", "[transport]") {
  const OnOneProcessor crowded;
  constexpr size_t bytes = 1234 * 4096;  // of no other memory of this process
  const auto words = test::run_ranks(4, on_hosts(2, "auto", "default"), [](Communicator& communicator) {
    const test::HeapVector<int32_t> input(bytes / 4, communicator.rank());
    std::vector<int32_t> output(input.size());
    const Status status = communicator.all_reduce(input.data(), output.data(), input.size(), DataType::int32, ReduceOp::sum);
    if (!status) return status.error().what;
    std::string wrong = output == std::vector<int32_t>(input.size(), 6) ? "" : "wrong sum";
    if (test::mappings_of(bytes + 4096) <= 4) wrong += "all was copied";                             // a mapping is each rank's own
    (void)communicator.all_reduce(output.data(), output.data(), 1, DataType::int32, ReduceOp::sum);  // before any frees its input
    return wrong;
  });
  CHECK(test::first_wrong(words) == "");
}
