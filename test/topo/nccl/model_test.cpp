#include "topo/nccl/model.h"

#include "schedule/verify.h"
#include "test/catch.h"

using namespace gyre;
using namespace gyre::topo::nccl;

namespace {

constexpr double never = 1e-18;  // seconds per byte, of what is not looked at

/// Whose costs are those of the test.
struct Imagined {
  ModelConstants constants = *model_constants_of("");
  Machine machine;

  Imagined(double hop, double network, double per_byte, double network_per_byte) {
    for (WireLines& lines : constants.lines) lines.hop = hop, lines.slot_bytes = 1e18;
    machine.ll128 = true;
    machine.network_latency = network;
    machine.link_rate = 1 / per_byte, machine.network_rate = 1 / network_per_byte, machine.reduce_rate = 1 / never;
  }
  double seconds(const Job& job, Collective collective, const Entry& entry, uint64_t bytes) const {
    return *Model::of(constants, machine, job)->seconds(collective, entry, bytes);
  }
};

constexpr Entry by_ring_ll{Algorithm::ring, Protocol::ll}, by_ring_simple{Algorithm::ring, Protocol::simple};
constexpr Entry by_tree_ll{Algorithm::tree, Protocol::ll}, by_tree_simple{Algorithm::tree, Protocol::simple};

}  // namespace

TEST_CASE("hops of NCCL's rings and trees follow one another: a ring's all around, a tree's along a chain and up and down") {
  const Imagined latency(1e-6, 10e-6, never, never);
  CHECK(latency.seconds({8, 1}, Collective::all_reduce, by_ring_ll, 1) == Approx(14e-6));
  CHECK(latency.seconds({8, 1}, Collective::all_gather, by_ring_ll, 8) == Approx(7e-6));
  CHECK(latency.seconds({8, 1}, Collective::broadcast, by_ring_ll, 1) == Approx(7e-6));
  CHECK(latency.seconds({8, 1}, Collective::all_reduce, by_tree_ll, 2) == Approx(14e-6));
  // Four nodes of two: of 14 hops of the ring some 6 are between nodes (those of the longest way); of the tree 2 levels and a hop, twice.
  CHECK(latency.seconds({8, 4}, Collective::all_reduce, by_tree_ll, 2) == Approx(2 * (2 * 11e-6 + 1e-6)));
  CHECK(latency.seconds({4, 4}, Collective::all_reduce, by_ring_ll, 4) == Approx(6 * 11e-6));
}

TEST_CASE("a protocol's flags are bytes too") {
  const Imagined bytes(0, 0, 1e-9, 1e-9);
  const double simple = bytes.seconds({4, 1}, Collective::all_reduce, by_ring_simple, 4'000'000);
  CHECK(simple == Approx(2 * 3e-3));  // 2(N-1)/N of them
  CHECK(bytes.seconds({4, 1}, Collective::all_reduce, by_ring_ll, 4'000'000) == Approx(2 * simple));
  CHECK(bytes.seconds({4, 1}, Collective::all_reduce, {Algorithm::ring, Protocol::ll128}, 4'000'000) == Approx(simple * 128 / 120));
  CHECK(bytes.seconds({4, 1}, Collective::all_gather, by_ring_simple, 4'000'000) == Approx(3e-3));
}

TEST_CASE("between two nodes a tree sends the data once, a ring 2(N-1)/N times") {
  const Imagined network(0, 0, never, 1e-9);
  CHECK(network.seconds({16, 2}, Collective::all_reduce, by_ring_simple, 16'000'000) == Approx(30e-3));
  const double once = network.seconds({16, 2}, Collective::all_reduce, by_tree_simple, 16'000'000);
  CHECK(once >= 16e-3);
  CHECK(once < 16.3e-3);  // up, and down while the rest comes up: the last piece's way comes on top
}

TEST_CASE("a message that does not fit a slot goes in pieces, around after around") {
  Imagined small(1e-6, 0, never, never);
  for (WireLines& lines : small.constants.lines) lines.slot_bytes = 1000;
  const double one = small.seconds({4, 1}, Collective::all_reduce, by_ring_simple, 4000);
  CHECK(one == Approx(6e-6));
  CHECK(small.seconds({4, 1}, Collective::all_reduce, by_ring_simple, 40'000) > 2 * one);
  small.machine.one_node.run = 10;
  CHECK(small.seconds({4, 1}, Collective::all_reduce, by_ring_simple, 40'000) == Approx(one));
}

TEST_CASE("NCCL has trees for all-reduces only, and LL128 where the machine keeps its order") {
  const Imagined any(1e-6, 0, never, never);
  Machine machine = any.machine;
  CHECK(has(machine, Collective::all_reduce, by_tree_ll));
  CHECK(!has(machine, Collective::broadcast, by_tree_ll));
  CHECK(has(machine, Collective::broadcast, {Algorithm::ring, Protocol::ll128}));
  machine.ll128 = false;
  CHECK(!has(machine, Collective::broadcast, {Algorithm::ring, Protocol::ll128}));
  const auto model = Model::of(any.constants, machine, {4, 2});
  CHECK(!model->seconds(Collective::all_reduce, {Algorithm::tree, Protocol::ll128}, 8));
  CHECK(!model->seconds(Collective::all_to_all, by_ring_ll, 8));
  CHECK(Model::of(any.constants, machine, {5, 2}).error().what == "5 ranks can't be spread over 2 nodes evenly");
  CHECK(!Model::of(any.constants, machine, {2, 4}));
}

TEST_CASE("a tree of chains is an all-reduce") {
  for (const Job job : {Job{1, 1}, Job{8, 1}, Job{4, 4}, Job{9, 3}, Job{14, 7}}) {
    const auto proof = schedule::verify(tree_of_chains(job), {});
    INFO(job.ranks << " ranks on " << job.nodes << " nodes");
    CHECK(static_cast<bool>(proof));
  }
}
