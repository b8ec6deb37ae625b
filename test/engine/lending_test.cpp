// Messages between ranks of a host that are read where they lie, in the shared heap.
#include <fmt/format.h>
#include <sched.h>
#include <sys/resource.h>

#include <cstring>
#include <memory>
#include <new>

#include "engine/communicator.h"
#include "engine/machines.h"
#include "test/catch.h"
#include "test/engine/heap_allocator.h"
#include "test/engine/job_memory.h"
#include "test/mappings.h"
#include "test/ranks.h"
#include "test/slow_builds.h"
#include "topo/algorithms.h"
#include "transport/slot_fifo.h"

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

TEST_CASE("memory of a peer that can't be read is an error of all ranks, which says why", "[transport]") {
  const OnOneProcessor crowded;
  rlimit before{};
  getrlimit(RLIMIT_NOFILE, &before);
  const auto words =
      test::run_ranks(2, test::all_configured({"GYRE_ALGORITHM=ring", "GYRE_TRANSPORT=shm"}), [&](Communicator& communicator) {
        test::HeapVector<int32_t> data(1 << 20, 1);
        int32_t one = 1;
        const Status met = communicator.all_reduce(&one, &one, 1, DataType::int32, ReduceOp::sum);
        if (!met) return met.error().what;
        const rlimit none{0, before.rlim_max};
        setrlimit(RLIMIT_NOFILE, &none);  // no file can be opened, as where too many are open
        const Status status = communicator.all_reduce(data.data(), data.data(), data.size(), DataType::int32, ReduceOp::sum);
        return status ? std::string("no error") : status.error().what;
      });
  setrlimit(RLIMIT_NOFILE, &before);
  for (const std::string& said : words) CHECK(said.find("memory that the peer lends: ") != std::string::npos);
}

namespace {

/// Two ranks of a plan in one thread, joined by a connection that lends.
struct Pair {
  static constexpr transport::Slots slots{8, 64 << 10};
  struct Delete {
    void operator()(std::byte* p) const { ::operator delete (p, std::align_val_t{transport::SlotRing::page}); }
  };

  Pair()
      : memory(static_cast<std::byte*>(
            ::operator new (2 * transport::SlotRing::footprint(slots), std::align_val_t{transport::SlotRing::page}))) {
    std::memset(memory.get(), 0, 2 * transport::SlotRing::footprint(slots));
    const transport::SlotRing there(memory.get(), slots);
    const transport::SlotRing back(memory.get() + transport::SlotRing::footprint(slots), slots);
    ends[0] = std::make_unique<transport::SlotFifo>(there, back, &failure);
    ends[1] = std::make_unique<transport::SlotFifo>(back, there, &failure);
  }
  Machines rank(Rank rank) {
    std::vector<std::vector<transport::Fifo*>> fifos(1, std::vector<transport::Fifo*>(2));
    fifos[0][static_cast<size_t>(1 - rank)] = ends[rank].get();
    return {rank, fifos, Away{}};
  }

  std::unique_ptr<std::byte, Delete> memory;
  std::optional<Error> failure;
  std::unique_ptr<transport::SlotFifo> ends[2];
};

}  // namespace

TEST_CASE("what a rank has lent and takes back completes no call of another's") {
  Pair pair;
  const Call call{Collective::broadcast, 32 << 10, DataType::float64, ReduceOp::sum, 0};
  const Plan plan = *Plan::make(*prove("tree", {call.collective, 2, 1, 0, {}}, Pair::slots), call, Pair::slots.bytes);
  const Identity identity{1, 7, plan.hash(), &plan.text()};
  test::HeapVector<double> sent(call.count, 1);
  std::vector<double> received(call.count);
  Machines root = pair.rank(0);
  Machines other = pair.rank(1);
  root.bind(plan, identity, {sent.data(), sent.data()});
  other.bind(plan, identity, {nullptr, received.data()});
  const bool is_taken_back = GENERATE(false, true);
  CHECK_FALSE(root.move().done);
  if (is_taken_back) {
    pair.ends[0].reset();
    std::fill(sent.begin(), sent.end(), 2);
  }
  bool done = false;
  bool root_done = is_taken_back;
  for (int i = 0; i < 1000 && !(done && root_done); ++i) {
    done = done || other.move().done;
    root_done = root_done || root.move().done;
  }
  CHECK(done == !is_taken_back);
  CHECK(root_done);
}
