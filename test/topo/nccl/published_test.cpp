#include "topo/nccl/published.h"

#include "test/catch.h"

using namespace gyre;
using namespace gyre::topo::nccl;

namespace {

PublishedModel defaults(std::string_view machine, const Job& job) {
  const auto constants = model_constants_of("");
  return {constants->published, *constants->machine(machine), job};
}
double us(const PublishedModel& model, Collective collective, const Entry& entry, uint64_t bytes) {
  return *model.seconds(collective, entry, bytes) * 1e6;
}
double gb_per_s(const PublishedModel& model, Collective collective, const Entry& entry) { return model.bandwidth(collective, entry) / 1e9; }

constexpr Entry tree_of(Protocol protocol) { return {Algorithm::tree, protocol}; }
constexpr Entry ring_of(Protocol protocol) { return {Algorithm::ring, protocol}; }

}  // namespace

TEST_CASE("NCCL's rule gives the time that NCCL has logged: 4 bytes between 24 H100 on 3 nodes (NVIDIA/nccl issue 1453)") {
  CHECK(us(defaults("dgx_h100", {24, 3}), Collective::all_reduce, tree_of(Protocol::ll), 4) == Approx(25.200462).epsilon(1e-7));
}

TEST_CASE("NCCL's rule on a node of NVLinks, by hand") {
  const PublishedModel one = defaults("dgx_h100", {8, 1});
  const auto all_reduce = Collective::all_reduce;
  CHECK(one.latency(all_reduce, ring_of(Protocol::ll)) * 1e6 == Approx(6.6 + 14 * 0.6));
  CHECK(one.latency(all_reduce, ring_of(Protocol::ll128)) * 1e6 == Approx(14 + 14 * 1.9));
  CHECK(one.latency(all_reduce, ring_of(Protocol::simple)) * 1e6 == Approx(8.4 + 14 * 3.4));
  CHECK(one.latency(all_reduce, tree_of(Protocol::simple)) * 1e6 == Approx(8.4 + 2 * 7 * 4.0));
  CHECK(gb_per_s(one, all_reduce, ring_of(Protocol::ll)) == Approx(141 * 8 / 14.));
  CHECK(gb_per_s(one, all_reduce, ring_of(Protocol::ll128)) == Approx(360 * 0.92 * 8 / 14));
  CHECK(gb_per_s(one, all_reduce, ring_of(Protocol::simple)) == Approx(360 * 8 / 14.));
  CHECK(gb_per_s(one, all_reduce, tree_of(Protocol::ll)) == Approx(360 * 0.92 / 3.8 * 0.85 / 2));
  CHECK(gb_per_s(one, all_reduce, tree_of(Protocol::ll128)) == Approx(360 * 0.92 * 7 / 9 * 0.85 / 2));
  CHECK(gb_per_s(one, all_reduce, tree_of(Protocol::simple)) == Approx(360 * 0.92 * 0.85 / 2));
  CHECK(gb_per_s(one, Collective::all_gather, ring_of(Protocol::simple)) == Approx(360 * 8 / 7.));
  // From 64 KiB on, and up to where 128 KiB begins, a tree by Simple has 0.6 of its bandwidth.
  CHECK(us(one, all_reduce, tree_of(Protocol::simple), 65536) == Approx(64.4 + 65536 / (360 * 0.92 * 0.85 / 2 * 600)));
  CHECK(us(one, all_reduce, tree_of(Protocol::simple), 131072) == Approx(64.4 + 131072 / (360 * 0.92 * 0.85 / 2 * 500)));
  CHECK(us(one, all_reduce, ring_of(Protocol::simple), 65536) == Approx(56 + 65536 / (360 * 8 / 14. * 1000)));
}

TEST_CASE("NCCL's rule on several nodes, by hand: what posting takes, the plateau of the ring, bounds by processor") {
  const PublishedModel two = defaults("dgx_h100", {16, 2});
  const auto all_reduce = Collective::all_reduce;
  CHECK(two.latency(all_reduce, ring_of(Protocol::simple)) * 1e6 == Approx(8.4 + 28 * 3.4 + 2 * 14));
  CHECK(two.latency(all_reduce, ring_of(Protocol::ll)) * 1e6 == Approx(6.6 + 28 * 1.0 + 2 * 2.7));  // posting takes longer than NVLink
  CHECK(two.latency(all_reduce, tree_of(Protocol::ll128)) * 1e6 == Approx(14 + 2 * (7 * 1.25 + 8.5)));
  CHECK(gb_per_s(two, all_reduce, ring_of(Protocol::ll)) == Approx(39 * 16 / 30.));
  CHECK(gb_per_s(two, all_reduce, tree_of(Protocol::simple)) == Approx(8 * 45 * 0.92 * 0.85 / 2));
  CHECK(gb_per_s(two, all_reduce, tree_of(Protocol::ll128)) == Approx(8 * 36.7 * 0.85 / 2));
  // 16 ranks of 16 channels of 64 B.
  CHECK(us(two, all_reduce, ring_of(Protocol::simple), 16383) == Approx(131.6 + 16383 / (360 * 16 / 30. * 1000)));
  CHECK(us(two, all_reduce, ring_of(Protocol::simple), 16384) == Approx(131.6 * 1.4 + 16384 / (360 * 16 / 30. * 1000)));
  CHECK(us(two, Collective::all_gather, ring_of(Protocol::simple), 16384) == Approx(8.4 + 14 * 3.4 + 14 + 16384 / (360 * 16 / 15. * 1000)));
  CHECK(gb_per_s(defaults("dgx_h100", {128, 16}), all_reduce, tree_of(Protocol::simple)) == Approx(8 * 36 * 0.85 / 2));
  // One GPU of a node: the tree's network, whatever the algorithm.
  CHECK(defaults("dgx_h100", {2, 2}).latency(all_reduce, ring_of(Protocol::ll)) * 1e6 == Approx(6.6 + 2 * 5));
  auto constants = model_constants_of("");
  Machine amd = *constants->machine("dgx_h100");
  amd.cpu = Processor::amd;
  const PublishedModel on_amd(constants->published, amd, {16, 2});
  CHECK(gb_per_s(on_amd, all_reduce, ring_of(Protocol::ll)) == Approx(22.5 * 16 / 30));
  CHECK(on_amd.latency(all_reduce, ring_of(Protocol::simple)) * 1e6 == Approx(8.4 + 28 * 6.0 + 2 * 14));
}

TEST_CASE("NCCL's rule for broadcasts and reduces, by hand: one hop where all channels are the same ring, else all, Simple's as a tree's") {
  const PublishedModel one = defaults("dgx_h100", {8, 1});
  CHECK(one.latency(Collective::broadcast, ring_of(Protocol::ll)) * 1e6 == Approx(6.6 + 0.6));
  CHECK(gb_per_s(one, Collective::broadcast, ring_of(Protocol::simple)) == Approx(360));
  const PublishedModel two = defaults("dgx_h100", {16, 2});
  CHECK(two.latency(Collective::reduce, ring_of(Protocol::ll)) * 1e6 == Approx(6.6 + 16 * 2.7));
  CHECK(two.latency(Collective::reduce, ring_of(Protocol::simple)) * 1e6 == Approx(8.4 + 16 * 14));
  CHECK(!two.seconds(Collective::broadcast, tree_of(Protocol::ll), 8));
  CHECK(!two.seconds(Collective::all_to_all, ring_of(Protocol::ll), 8));
}

TEST_CASE("NCCL's rule over PCIe and TCP, by hand") {
  const PublishedModel pcie = defaults("pcie_4090", {8, 1});
  CHECK(pcie.latency(Collective::all_reduce, ring_of(Protocol::simple)) * 1e6 == Approx(8.4 + 14 * 5.7));
  CHECK(pcie.latency(Collective::all_reduce, tree_of(Protocol::ll)) * 1e6 == Approx(6.8 + 2 * 7 * 1.0));
  CHECK(gb_per_s(pcie, Collective::all_reduce, ring_of(Protocol::ll)) == Approx(2.5 * 8 / 14));
  CHECK(gb_per_s(pcie, Collective::all_reduce, tree_of(Protocol::simple)) == Approx(5 * 0.92 / 2));
  CHECK(!pcie.seconds(Collective::all_reduce, ring_of(Protocol::ll128), 8));
  const PublishedModel cloud = defaults("cloud_t4", {8, 2});
  CHECK(us(cloud, Collective::all_reduce, ring_of(Protocol::simple), 1 << 20) ==
        Approx(1.9 * (8.4 + 12 * 5.7 + 2 * 14) + (1 << 20) / (6000 * 8 / 14.)));
}
