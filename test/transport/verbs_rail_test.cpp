// What a rail knows of its port, and what it is told when that changes.
#include "transport/verbs/rail.h"

#include <fmt/format.h>

#include <cstdlib>

#include "test/catch.h"
#include "test/transport/fake_verbs.h"

namespace gyre::test {
namespace {

using namespace transport::verbs;
using Kind = RailEvent::Kind;

struct Variable {
  Variable(const char* n, const char* value) : name(n) { ::setenv(name, value, 1); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;
  ~Variable() { ::unsetenv(name); }
  const char* name;
};

std::vector<Kind> kinds(Rail& rail) {
  std::vector<Kind> all;
  for (const RailEvent& event : rail.events()) all.push_back(event.kind);
  return all;
}

FakeTraits infiniband() {
  FakeTraits traits;
  traits.link_layer = IBV_LINK_LAYER_INFINIBAND;
  return traits;
}

std::string open_error(const std::string& device, PathOptions options, const FakeVerbs& fake) {
  auto rail = Rail::open(device, 1, options, fake.sysfs());
  return rail ? "" : rail.error().what;
}

}  // namespace

TEST_CASE("a rail says by which address and how fast it sends") {
  FakeVerbs fake;
  fake.add_device("mlx5_0");
  auto traits = infiniband();
  traits.width = 16;
  traits.speed = 128;
  fake.add_device("mlx5_1", traits);
  const auto roce = *Rail::open("mlx5_0", 1, {}, fake.sysfs()), ib = *Rail::open("mlx5_1", 1, {}, fake.sysfs());
  CHECK(roce->describe() == "mlx5_0:1 (100000 Mbit/s, RoCE v2 10.7.1.0, index 0)");
  CHECK(ib->describe() == "mlx5_1:1 (200000 Mbit/s, InfiniBand LID 7)");
  CHECK(roce->mbit_per_s() == 100000);
}

TEST_CASE("lanes and speeds, by their codes") {
  CHECK(mbit_per_s(1, 1) == 2500);
  CHECK(mbit_per_s(2, 4) == 40000);
  CHECK(mbit_per_s(8, 16) == 168000);
  CHECK(mbit_per_s(4, 64) == 400000);
  CHECK(mbit_per_s(16, 128) == 200000);
  CHECK(mbit_per_s(3, 1) == 0);
  CHECK(mbit_per_s(2, 3) == 0);
}

TEST_CASE("events of the rail's port come once, and none blocks") {
  FakeVerbs fake;
  FakeTraits two_ports;
  two_ports.ports = 2;
  fake.add_device("mlx5_0", two_ports);
  const auto rail = *Rail::open("mlx5_0", 1, {}, fake.sysfs());
  CHECK(rail->events().empty());
  fake.cut("mlx5_0", 2);
  fake.tell("mlx5_0", IBV_EVENT_COMM_EST);
  CHECK(rail->events().empty());
  CHECK(rail->up());

  fake.cut("mlx5_0", 1);
  CHECK(kinds(*rail) == std::vector{Kind::port_down});
  CHECK(!rail->up());
  CHECK(rail->events().empty());
  fake.restore("mlx5_0", 1);
  fake.tell("mlx5_0", IBV_EVENT_LID_CHANGE);
  fake.tell("mlx5_0", IBV_EVENT_CLIENT_REREGISTER);
  CHECK(kinds(*rail) == std::vector{Kind::port_up, Kind::lid_change, Kind::lid_change});
  CHECK(rail->up());
  fake.kill("mlx5_0");
  CHECK(kinds(*rail) == std::vector{Kind::device_fatal});
  CHECK(!rail->up());
}

TEST_CASE("an event of a queue pair names it") {
  FakeVerbs fake;
  fake.add_device("mlx5_0");
  const auto rail = *Rail::open("mlx5_0", 1, {}, fake.sysfs());
  Rail::Limits limits{16, 16, 0};
  const auto made = *rail->make_pair(nullptr, limits);
  const auto& pair = made.pair;
  fake.tell_of_pair("mlx5_0", IBV_EVENT_QP_ACCESS_ERR, pair->qp_num);
  const auto events = rail->events();
  REQUIRE(events.size() == 1);
  CHECK(events[0].kind == Kind::pair_failed);
  CHECK(events[0].pair == pair->qp_num);
  CHECK(words(events[0], rail->name()).find(fmt::format("mlx5_0:1: queue pair {}: ", pair->qp_num)) == 0);
}

TEST_CASE("a new address is used by queue pairs made from then on") {
  FakeVerbs fake;
  fake.add_device("mlx5_0");
  const auto rail = *Rail::open("mlx5_0", 1, {}, fake.sysfs());
  Rail::Limits limits{16, 16, 0};
  const auto made = *rail->make_pair(nullptr, limits);
  const auto& pair = made.pair;
  CHECK(rail->card(*pair).gid[15] == 0);
  fake.set_gid("mlx5_0", 0, "0000:0000:0000:0000:0000:0000:0000:0000", "");
  fake.set_gid("mlx5_0", 3, "0000:0000:0000:0000:0000:ffff:0a07:0163", "RoCE v2");
  CHECK(kinds(*rail) == std::vector{Kind::gid_change, Kind::gid_change});
  CHECK(rail->card(*pair).gid[15] == 0x63);
  CHECK(rail->address_of({}).grh.sgid_index == 3);

  fake.set_gid("mlx5_0", 3, "0000:0000:0000:0000:0000:0000:0000:0000", "");
  CHECK(kinds(*rail) == std::vector{Kind::gid_change});
  CHECK(rail->card(*pair).gid[15] == 0x63);
  const auto refreshed = rail->refresh();
  REQUIRE(!refreshed);
  CHECK(refreshed.error().what == "mlx5_0:1: no address of the port fits RoCE v2; it has none");
}

TEST_CASE("RoCE sends by address") {
  FakeVerbs fake;
  fake.add_device("mlx5_0");
  PathOptions options;
  options.service_level = 3;
  options.traffic_class = 106;
  const auto rail = *Rail::open("mlx5_0", 1, options, fake.sysfs());
  PairCard peer;
  peer.gid[15] = 9;
  const auto address = rail->address_of(peer);
  CHECK(address.is_global == 1);
  CHECK(address.grh.dgid.raw[15] == 9);
  CHECK(address.grh.traffic_class == 106);
  CHECK(address.grh.hop_limit > 1);
  CHECK(address.sl == 3);
}

TEST_CASE("InfiniBand sends by LID within a subnet, by a global route to another") {
  FakeVerbs fake;
  fake.add_device("mlx5_0", infiniband());
  const auto rail = *Rail::open("mlx5_0", 1, {}, fake.sysfs());
  PairCard peer;
  peer.lid = 12;
  peer.gid = {0xfe, 0x80, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8};
  CHECK(rail->address_of(peer).dlid == 12);
  CHECK(rail->address_of(peer).is_global == 0);
  peer.gid[7] = 1;
  CHECK(rail->address_of(peer).is_global == 1);
  CHECK(rail->address_of(peer).dlid == 12);
  CHECK(rail->address_of(peer).grh.dgid.raw[15] == 8);
  peer.gid[4] = 0x12;
  peer.gid[5] = 0x34;
  CHECK(rail->address_of(peer).dlid == 0x1234);
}

TEST_CASE("InfiniBand takes the address that names a router, where there is one") {
  FakeVerbs fake;
  fake.add_device("mlx5_0", infiniband());
  fake.set_gid("mlx5_0", 1, "fe80:0000:c001:0002:0002:c903:0000:0100", "IB/RoCE v1");
  CHECK((*Rail::open("mlx5_0", 1, {}, fake.sysfs()))->address_of({}).grh.sgid_index == 1);
  const Variable other("NCCL_IB_ROUTABLE_FLID_GID_INDEX", "2");
  CHECK((*Rail::open("mlx5_0", 1, {}, fake.sysfs()))->address_of({}).grh.sgid_index == 0);
}

TEST_CASE("a partition key that the port does not have is an error that shows those it has") {
  FakeVerbs fake;
  auto traits = infiniband();
  traits.pkeys = {0xffff, 0x8001, 0};
  fake.add_device("mlx5_0", traits);
  PathOptions options;
  options.pkey_index = 1;
  CHECK(open_error("mlx5_0", options, fake).empty());
  options.pkey_index = 2;
  CHECK(open_error("mlx5_0", options, fake) ==
        "mlx5_0:1: NCCL_IB_PKEY=2 is no index in use of the port's table of partition keys, which has 0: 0xffff, 1: 0x8001");
  options.pkey_value = 0x0001;
  CHECK(open_error("mlx5_0", options, fake).empty());
  options.pkey_value = 0x8002;
  CHECK(open_error("mlx5_0", options, fake) ==
        "mlx5_0:1: NCCL_IB_PKEY_VALUE=0x8002 is not in the port's table of partition keys, which has 0: 0xffff, 1: 0x8001");
}

TEST_CASE("adaptive routing is InfiniBand's, unless NCCL's variable says otherwise") {
  FakeVerbs fake;
  fake.add_device("mlx5_0");
  fake.add_device("mlx5_1", infiniband());
  const auto routed = [&](const char* device) {
    return (*Rail::open(device, 1, *PathOptions::from_environment(), fake.sysfs()))->adaptive_routing();
  };
  CHECK(!routed("mlx5_0"));
  CHECK(routed("mlx5_1"));
  {
    const Variable off("NCCL_IB_ADAPTIVE_ROUTING", "0");
    CHECK(!routed("mlx5_1"));
  }
  const Variable on("NCCL_IB_ADAPTIVE_ROUTING", "1");
  CHECK(routed("mlx5_0"));
}

TEST_CASE("a port that is not active is an error that says what mends it") {
  FakeVerbs fake;
  fake.add_device("mlx5_0");
  fake.add_device("mlx5_1", infiniband());
  fake.cut("mlx5_0");
  fake.cut("mlx5_1");
  CHECK(open_error("mlx5_0", {}, fake) ==
        "mlx5_0:1: the port is down, not active: is its cable plugged in? Else: ip link set its-interface up");
  CHECK(open_error("mlx5_1", {}, fake) ==
        "mlx5_1:1: the port is down, not active: there is no link: is the cable plugged in, and the port at its other end on?");
}

}  // namespace gyre::test
