// Rings over the ranks of jobs on machines that are not here.
#include "topo/gpu_rings.h"

#include <algorithm>
#include <map>

#include "test/catch.h"
#include "test/topo/five_machines.h"
#include "topo/discover.h"
#include "topo/job_channels.h"

using namespace gyre;
using namespace gyre::topo;
using schedule::RankOrder;
using test::FakeMachine;

namespace {

/// The rows of all GPUs of a machine, by address.
std::vector<GpuRow> rows_of(const Topology& topology) {
  std::vector<GpuRow> rows;
  for (const int gpu : topology.all<Gpu>()) rows.push_back(*gpu_row(topology, topology.part(gpu).pci->address));
  return rows;
}

Topology dgx(int nvlinks, const std::string& down = "") {
  const FakeMachine machine;
  test::make_dgx(machine);
  if (!down.empty()) machine.put("sys/class/infiniband/" + down + "/ports/1/state", "1: DOWN");
  std::vector<DriverGpu> driver;
  for (int gpu = 0; gpu < 8; ++gpu) {
    driver.push_back({*parse_pci_address("0000:" + std::to_string(10 * gpu + 13) + ":00.0"), {}});
    if (nvlinks > 0) driver.back().gpu.nvlinks = {{std::nullopt, pci_nvswitch, nvlinks}};
  }
  return *discover(machine.root(), driver);
}
std::vector<GpuRow> dgx_rows(int nvlinks) { return rows_of(dgx(nvlinks)); }

/// Two sockets, on each two switches with two GPUs, and a port at the first; with an NVLink from each GPU to the one so many further, and
/// back.
Topology box(size_t nvlink_to = 0) {
  const FakeMachine machine;
  machine.x86();
  machine.numa(0, "0f"), machine.numa(1, "f0");
  for (int i = 0; i < 4; ++i) {
    const std::string bus = std::to_string(10 + 10 * i), socket = std::to_string(i / 2);
    const std::string upper = "0000:" + bus + "/0000:" + bus + ":01.0/0000:" + std::to_string(11 + 10 * i) + ":00.0";
    machine.bridge("0000:" + bus + "/0000:" + bus + ":01.0", i / 2);
    machine.bridge(upper, i / 2);
    for (int below = 0; below < 2; ++below) {
      const std::string lower = upper + "/0000:" + std::to_string(12 + 10 * i) + ":0" + std::to_string(below) + ".0";
      machine.bridge(lower, i / 2);
      machine.gpu(lower + "/0000:" + std::to_string(13 + 10 * i + below) + ":00.0", i / 2);
    }
  }
  machine.rdma(machine.nic("0000:60/0000:60:00.0", 0), "mlx5_0", "400 Gb/sec (4X NDR)");
  std::vector<DriverGpu> driver;
  for (const char* bus : {"13", "14", "23", "24", "33", "34", "43", "44"})
    driver.push_back({*parse_pci_address("0000:" + std::string(bus) + ":00.0"), {}});
  for (size_t gpu = 0; nvlink_to != 0 && gpu < 8; ++gpu) driver[gpu].gpu.nvlinks = {{driver[(gpu + nvlink_to) % 8].address, pci_gpu, 1}};
  return *discover(machine.root(), driver);
}
std::vector<GpuRow> box_rows(size_t nvlink_to = 0) { return rows_of(box(nvlink_to)); }

/// GPUs and an interface side by side, as clouds show them.
Topology flat() {
  const FakeMachine machine;
  machine.x86();
  machine.numa(0, "ff");
  for (int i = 0; i < 4; ++i) machine.gpu("0000:00/0000:00:0" + std::to_string(4 + i) + ".0", 0);
  machine.interface(machine.pci("0000:00/0000:00:03.0", {"0x020000", "0x1d0f", 0, "", 0, 0}), "ens3", "100000");
  return *discover(machine.root(), {});
}
std::vector<GpuRow> flat_rows() { return rows_of(flat()); }

Topology laptop() { return test::NamedMachine{"", test::make_laptop}.topology(); }
Topology tray() { return test::NamedMachine{"", test::make_tray}.topology(); }

/// Ranks that are dealt to hosts in turn, and there to GPUs in the order given.
std::vector<GpuRank> dealt(const std::vector<GpuRow>& rows, int hosts, const std::vector<size_t>& gpus) {
  static constexpr const char* names[] = {"a", "b", "c", "d"};
  std::vector<GpuRank> ranks;
  for (const size_t gpu : gpus) {
    for (int host = 0; host < hosts; ++host) ranks.push_back({names[host], rows[gpu]});
  }
  return ranks;
}

/// The addresses that a ring passes.
std::vector<std::string> gpus_along(const RankOrder& ring, const std::vector<GpuRank>& ranks) {
  std::vector<std::string> out;
  for (const Rank rank : ring) out.push_back(ranks[static_cast<size_t>(rank)].gpu.gpu);
  return out;
}

size_t hops(const RankOrder& ring, auto counts) {
  size_t found = 0;
  for (size_t i = 0; i < ring.size(); ++i) found += counts(ring[i], ring[(i + 1) % ring.size()]);
  return found;
}

/// Hops at that distance, by what the ranks' rows say.
size_t hops_at(const RankOrder& ring, const std::vector<GpuRank>& ranks, Distance distance) {
  return hops(ring, [&](Rank from, Rank to) {
    const GpuRow &row = ranks[static_cast<size_t>(from)].gpu, &next = ranks[static_cast<size_t>(to)].gpu;
    const auto other = std::ranges::find(row.others, next.gpu, &GpuRow::Other::gpu);
    return other != row.others.end() && other->distance == distance;
  });
}

size_t hops_between_hosts(const RankOrder& ring, const std::vector<GpuRank>& ranks) {
  return hops(ring, [&](Rank from, Rank to) { return ranks[static_cast<size_t>(from)].host != ranks[static_cast<size_t>(to)].host; });
}

}  // namespace

TEST_CASE("however ranks are dealt to GPUs, a ring stays below a switch, then at a socket, as long as it can") {
  const auto rows = box_rows();
  REQUIRE(rows.size() == 8);
  for (const std::vector<size_t>& gpus :
       {std::vector<size_t>{0, 1, 2, 3, 4, 5, 6, 7}, {0, 4, 1, 5, 2, 6, 3, 7}, {7, 2, 5, 0, 3, 6, 1, 4}}) {
    const auto ranks = dealt(rows, 1, gpus);
    const auto found = *gpu_rings(ranks);
    REQUIRE(found.orders.rings.size() == 1);
    CHECK(hops_at(found.orders.rings[0], ranks, Distance::one_switch) == 4);
    CHECK(hops_at(found.orders.rings[0], ranks, Distance::system) == 2);
    CHECK(gpus_along(found.orders.rings[0], ranks) ==
          gpus_along(gpu_rings(dealt(rows, 1, {0, 1, 2, 3, 4, 5, 6, 7}))->orders.rings[0], dealt(rows, 1, {0, 1, 2, 3, 4, 5, 6, 7})));
  }
}

TEST_CASE("the order changes with the machine") {
  const std::vector<size_t> gpus{0, 1, 2, 3, 4, 5, 6, 7};
  const auto box = gpu_rings(dealt(box_rows(), 1, gpus)), linked = gpu_rings(dealt(box_rows(3), 1, gpus));
  CHECK(box->orders.rings == std::vector<RankOrder>{{0, 1, 2, 3, 4, 5, 6, 7}});
  CHECK(linked->orders.rings == std::vector<RankOrder>{{0, 3, 6, 1, 4, 7, 2, 5}, {5, 2, 7, 4, 1, 6, 3, 0}});
  CHECK(box->digest != linked->digest);
  CHECK(gpu_rings(dealt(dgx_rows(18), 1, gpus))->orders.rings.size() == 18);  // each of the NVLinks to switches once each way
  CHECK(gpu_rings(dealt(flat_rows(), 1, {3, 2, 1, 0}))->orders.rings == std::vector<RankOrder>{{3, 2, 1, 0}});
}

TEST_CASE("laptops are one ring over their one GPU each; a tray has one for each NVLink of the GPU with fewest, several for each port") {
  const auto laptops = rows_of(laptop()), trays = rows_of(tray());
  CHECK(laptops.size() == 1);
  CHECK(laptops[0].rails == std::vector<std::string>{"wlan0"});
  CHECK(gpu_rings(dealt(laptops, 1, {0}))->orders.rings == std::vector<RankOrder>{{0}});
  CHECK(gpu_rings(dealt(laptops, 3, {0}))->orders.rings == std::vector<RankOrder>{{0, 1, 2}});
  CHECK(gpu_rings(dealt(trays, 1, {0, 1, 2, 3}))->orders.rings.size() == 16);
  const auto two = dealt(trays, 2, {0, 1, 2, 3});
  const auto found = *gpu_rings(two);
  REQUIRE(found.orders.rings.size() == 4);
  for (const RankOrder& ring : found.orders.rings) CHECK(hops_between_hosts(ring, two) == 2);
}

TEST_CASE("between hosts there is a ring for each port near a GPU, which leaves each host once") {
  const auto rows = dgx_rows(18);
  for (const int hosts : {2, 3}) {
    const auto ranks = dealt(rows, hosts, {3, 1, 4, 0, 5, 2, 6, 7});
    const auto found = *gpu_rings(ranks);
    REQUIRE(found.orders.rings.size() == 8);
    for (const RankOrder& ring : found.orders.rings) {
      CHECK(hops_between_hosts(ring, ranks) == static_cast<size_t>(hosts));
      RankOrder sorted = ring;
      std::ranges::sort(sorted);
      for (size_t rank = 0; rank < sorted.size(); ++rank) CHECK(sorted[rank] == static_cast<Rank>(rank));
      CHECK(ranks[static_cast<size_t>(ring[0])].host == "a");
    }
    for (const RankOrder& chain : found.orders.chains) {  // trees join GPUs of the same number, near ports of the same name
      for (size_t host = 1; host < static_cast<size_t>(hosts); ++host)
        CHECK(ranks[static_cast<size_t>(chain[8 * host])].gpu.gpu == ranks[static_cast<size_t>(chain[0])].gpu.gpu);
    }
  }
}

TEST_CASE("where a port is down on one host the others' rings go from each port to the one of its name") {
  const auto whole = dgx_rows(18), lacking = rows_of(dgx(18, "mlx5_1"));  // whose GPU goes out by the port for storage
  std::vector<GpuRank> ranks;
  for (size_t gpu = 0; gpu < 8; ++gpu) ranks.push_back({"a", whole[gpu]}), ranks.push_back({"b", lacking[gpu]});
  const auto rings = gpu_rings(ranks)->orders.rings;
  REQUIRE(rings.size() == 8);
  size_t all = 0, to_the_same = 0;
  for (const RankOrder& ring : rings) {
    all += hops_between_hosts(ring, ranks);
    to_the_same += hops(ring, [&](Rank from, Rank to) {
      const GpuRank &one = ranks[static_cast<size_t>(from)], &next = ranks[static_cast<size_t>(to)];
      return one.host != next.host && std::ranges::find_first_of(one.gpu.rails, next.gpu.rails) != one.gpu.rails.end();
    });
  }
  CHECK(all == 16);
  CHECK(to_the_same == 14);
}

TEST_CASE("rings and chains are the channels that gyre-perf topo shows of the machine, on one host and on several") {
  for (const Topology& machine : {dgx(0), dgx(18), box(), box(3), flat(), laptop(), tray()}) {
    for (const int hosts : {1, 2, 3}) {
      std::vector<GpuRank> ranks;
      for (const char* host : {"a", "b", "c"}) {
        for (const GpuRow& row : rows_of(machine)) ranks.push_back({host, row});
      }
      const auto shown = *job_channels(equal_nodes(node_links(machine), hosts));
      ranks.resize(shown[0].ring.size());
      const auto found = *gpu_rings(ranks);
      INFO(machine.all<Gpu>().size() << " GPUs, " << hosts << " hosts");
      REQUIRE(found.orders.rings.size() == shown.size());
      for (size_t channel = 0; channel < shown.size(); ++channel) {
        CHECK(found.orders.rings[channel] == shown[channel].ring);
        CHECK(found.orders.chains[channel] == shown[channel].chain);
      }
    }
  }
}

TEST_CASE("ranks that share a GPU follow each other, and take no NVLinks between them") {
  const auto rows = dgx_rows(2);
  const auto ranks = dealt(rows, 1, {0, 1, 0, 1, 0});
  const auto found = *gpu_rings(ranks);
  REQUIRE(found.orders.rings.size() == 2);
  CHECK(found.orders.rings[0] == RankOrder{0, 2, 4, 1, 3});
  const auto alone = *gpu_rings(dealt(rows, 1, {3, 3, 3}));
  REQUIRE(alone.orders.rings.size() == 1);
  CHECK(alone.orders.rings[0] == RankOrder{0, 1, 2});
}

TEST_CASE("ranks that do not reach each other are neighbours only where every order has some that are") {
  const auto rows = dgx_rows(18);
  const auto meetings = [&](const std::vector<GpuRank>& ranks, const schedule::RankPairs& missing) {
    const auto found = *gpu_rings(ranks, missing);
    REQUIRE(!found.orders.rings.empty());
    size_t most = 0;
    for (const RankOrder& ring : found.orders.rings) {
      most = std::max(most, hops(ring, [&](Rank from, Rank to) {
                        return std::ranges::find(missing, std::pair<Rank, Rank>(std::minmax(from, to))) != missing.end();
                      }));
    }
    return most;
  };
  const auto four = dealt(rows, 1, {0, 1, 2, 3});
  CHECK(gpu_rings(four, {{0, 1}})->digest != gpu_rings(four)->digest);
  CHECK(meetings(four, {{0, 1}}) == 0);
  CHECK(meetings(four, {{0, 1}, {2, 3}}) == 0);
  CHECK(meetings(four, {{0, 1}, {0, 2}}) == 1);  // rank 0 has one neighbour left
  CHECK(meetings(dealt(box_rows(), 1, {0, 1, 2, 3, 4, 5, 6, 7}), {{0, 1}, {2, 3}}) == 0);
  CHECK(meetings(dealt(rows, 1, {0, 0, 1, 1, 2, 2}), {{0, 2}, {1, 3}}) == 0);  // of ranks that share GPUs others are neighbours
  CHECK(meetings(dealt(rows, 1, {0, 0, 1, 1, 2, 2, 3, 3}), {{1, 2}, {0, 3}}) == 0);

  const auto hosts = dealt(rows, 4, {0, 1, 2});   // rank 0 on a, 1 on b, ...
  CHECK(meetings(hosts, {{0, 4}, {1, 9}}) == 0);  // though one of the three does not begin near its rail so
  schedule::RankPairs a_and_b;
  for (const Rank a : {0, 4, 8}) {
    for (const Rank b : {1, 5, 9}) a_and_b.push_back(std::minmax(a, b));
  }
  CHECK(meetings(hosts, a_and_b) == 0);
  CHECK(meetings(dealt(rows, 2, {0, 1, 2}), {{0, 1}, {0, 3}, {0, 5}, {1, 2}, {2, 3}, {2, 5}, {1, 4}, {3, 4}, {4, 5}}) == 2);
}

TEST_CASE("hosts may have different numbers of ranks, and GPUs that others' rows do not have") {
  const auto rows = dgx_rows(18);
  std::vector<GpuRank> ranks = dealt(rows, 2, {0, 1, 2});
  ranks.push_back({"b", rows[3]});
  ranks.push_back({"c", {"0000:01:00.0", 0, {}, {"eth0"}}});
  ranks.push_back({"c", {"0000:02:00.0", 0, {}, {}}});
  const auto found = *gpu_rings(ranks);
  REQUIRE(found.orders.rings.size() == 1);  // of the host that has but one port
  CHECK(hops_between_hosts(found.orders.rings[0], ranks) == 3);
}

TEST_CASE("ports are those near GPUs that have ranks, on all hosts the same, in the order of their names") {
  using Names = std::vector<std::string>;
  const auto rows = dgx_rows(18);
  CHECK(rails_near(dealt(rows, 2, {6, 1})) == Names{"mlx5_1:1", "mlx5_6:1"});
  const std::vector<GpuRank> apart{{"a", rows[1]}, {"a", rows[2]}, {"b", rows[2]}, {"b", rows[3]}};
  CHECK(rails_near(apart) == Names{"mlx5_1:1", "mlx5_2:1", "mlx5_3:1"});  // or a's second would deal with b's first
  const std::vector<GpuRank> ten{{"a", {"x", 0, {}, {"mlx5_10:1", "mlx5_9:1"}}}};
  CHECK(rails_near(ten) == Names{"mlx5_9:1", "mlx5_10:1"});
  CHECK(rails_near(dealt(box_rows(), 1, {0, 7})) == Names{"mlx5_0:1"});
  CHECK(rails_from(apart, 2) == Names{"mlx5_2:1", "mlx5_1:1", "mlx5_3:1"});  // its own comes first
  CHECK(rails_from(ten, 0) == Names{"mlx5_10:1", "mlx5_9:1"});
  CHECK(rails_from({}, 0).empty());
}

TEST_CASE("machines with many GPUs and ports, none alike, have their rings soon") {
  std::vector<GpuRank> ranks;
  std::vector<std::string> hosts;
  for (int host = 0; host < 8; ++host) hosts.push_back(std::string(1, static_cast<char>('a' + host)));
  for (int host = 0; host < 8; ++host) {
    for (int gpu = 0; gpu < 32; ++gpu) {
      GpuRow row{std::to_string(100 + gpu), 0, {}, {"mlx5_" + std::to_string(gpu % 16) + ":1"}};
      for (int other = 0; other < 32; ++other) {
        if (other != gpu)
          row.others.push_back({std::to_string(100 + other), (gpu ^ other) < 2 + host ? Distance::switches : Distance::system, 0});
      }
      ranks.push_back({hosts[static_cast<size_t>(host)], std::move(row)});
    }
  }
  CHECK(gpu_rings(ranks)->orders.rings.size() == 16);
}

TEST_CASE("nobody has no rings, and odd rows do no harm") {
  CHECK_FALSE(gpu_rings({}));
  const std::vector<GpuRank> odd{{"a", {"x", 7, {{"x", Distance::same, 9}, {"y", Distance::same, 3}, {"y", Distance::system, 1}}, {""}}},
                                 {"a", {"y", 1 << 20, {}, {"", ""}}}};
  const auto found = gpu_rings(odd);
  REQUIRE(found);
  for (const RankOrder& ring : found->orders.rings) CHECK(ring.size() == 2);
}

TEST_CASE("channels beyond the rings go along these the other way, and a root keeps its place on all") {
  const std::vector<RankOrder> rings{{0, 1, 2, 3}, {0, 2, 1, 3}};
  const auto orders = along_rings({rings, {}}, {Collective::all_reduce, 4, 4, 0, {}}, 0);
  CHECK(orders == std::vector<RankOrder>{{0, 1, 2, 3}, {3, 1, 2, 0}, {3, 2, 1, 0}, {0, 2, 1, 3}});
  CHECK(along_rings({{rings[0]}, {}}, {Collective::all_reduce, 4, 2, 0, {}}, 0) == std::vector<RankOrder>{rings[0], rings[0]});
  for (const RankOrder& order : along_rings({rings, {}}, {Collective::broadcast, 4, 4, 2, {}}, 1)) CHECK(order[2] == 1);
}

TEST_CASE("many hosts have their rings soon, also where each must be searched") {
  const auto rows = box_rows();
  std::vector<std::string> names;
  for (int host = 0; host < 512; ++host) names.push_back("host" + std::to_string(host));
  std::vector<GpuRank> ranks;
  for (const std::string& name : names) {
    for (const GpuRow& row : rows) ranks.push_back({name, row});
  }
  CHECK(gpu_rings(ranks)->orders.rings[0].size() == 4096);
}
