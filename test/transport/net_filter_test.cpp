// NCCL's variables: what a list of names accepts, and which interfaces NCCL would take.
#include "transport/net_filter.h"

#include <arpa/inet.h>

#include <cstring>

#include "test/catch.h"

using namespace gyre;
using namespace gyre::transport;

namespace {

NetMachine::Interface interface_at(const std::string& name, const char* address, bool running = true) {
  NetMachine::Interface i;
  i.name = name;
  i.running = running;
  auto* v4 = reinterpret_cast<sockaddr_in*>(&i.address.bytes);
  auto* v6 = reinterpret_cast<sockaddr_in6*>(&i.address.bytes);
  if (inet_pton(AF_INET, address, &v4->sin_addr) == 1) {
    v4->sin_family = AF_INET;
    i.address.length = sizeof *v4;
  } else {
    REQUIRE(inet_pton(AF_INET6, address, &v6->sin6_addr) == 1);
    v6->sin6_family = AF_INET6;
    i.address.length = sizeof *v6;
  }
  return i;
}

NetFilter of(const std::string& ifname, const std::string& family = "") { return {ifname, family, "", ""}; }

/// "eth0 192.0.2.2, eth1 fd00::1"
std::string chosen(const std::vector<NetMachine::Interface>& all, const NetFilter& filter) {
  std::string line;
  for (const auto& i : choose_interfaces(all, filter)) line += (line.empty() ? "" : ", ") + i.name + " " + text(i.address);
  return line;
}

std::vector<NetMachine::Interface> host() {
  return {interface_at("lo", "127.0.0.1"),    interface_at("eth0", "192.0.2.2"),   interface_at("eth1", "192.0.2.3"),
          interface_at("eth10", "192.0.2.4"), interface_at("docker0", "10.0.0.1"), interface_at("lo", "::1"),
          interface_at("eth0", "fd00::2"),    interface_at("eth0", "fe80::2"),     interface_at("v6only", "fd00::3")};
}

}  // namespace

TEST_CASE("a list of names takes prefixes, whole names with =, and all others with ^") {
  CHECK(NameList("eth").accepts("eth0"));
  CHECK(NameList("mlx5_1").accepts("mlx5_10"));
  CHECK_FALSE(NameList("=mlx5_1").accepts("mlx5_10"));
  CHECK(NameList("=mlx5_1").accepts("mlx5_1"));
  CHECK_FALSE(NameList("=mlx5_").accepts("mlx5_1"));
  CHECK_FALSE(NameList("^docker,lo").accepts("lo"));
  CHECK(NameList("^docker,lo").accepts("eth0"));
  CHECK(NameList("^=eth1").accepts("eth10"));
  CHECK_FALSE(NameList("^=eth1").accepts("eth1"));
  CHECK(NameList("ib,eth").accepts("eth0"));
  CHECK(NameList(",,eth,").accepts("eth0"));
  CHECK_FALSE(NameList(",,eth,").accepts("ib0"));
  CHECK_FALSE(NameList("Eth").accepts("eth0"));
}

TEST_CASE("a list without names accepts everything, and with ^ nothing") {
  CHECK(NameList("").accepts("mlx5_0", 1));
  CHECK(NameList("=").accepts("mlx5_0", 1));
  CHECK(NameList(":1").accepts("mlx5_0", 2));
  CHECK_FALSE(NameList("^").accepts("mlx5_0", 1));
}

TEST_CASE("a list of names may name ports, rails and planes") {
  CHECK(NameList("mlx5_0:1,mlx5_3:2").accepts("mlx5_0", 1));
  CHECK_FALSE(NameList("mlx5_0:1,mlx5_3:2").accepts("mlx5_0", 2));
  CHECK(NameList("mlx5_0:1,mlx5_3:2").accepts("mlx5_3", 2));
  CHECK_FALSE(NameList("^mlx5_0:1").accepts("mlx5_0", 1));
  CHECK(NameList("^mlx5_0:1").accepts("mlx5_0", 2));
  CHECK(NameList("=mlx5_0:").accepts("mlx5_0", 2));
  CHECK_FALSE(NameList("mlx5_0:x").accepts("mlx5_0", 1));
  const NameList full("mlx5_0:1:3:4,mlx5_1::5");
  REQUIRE(full.find("mlx5_0", 1) != nullptr);
  CHECK(full.find("mlx5_0", 1)->rail == 3);
  CHECK(full.find("mlx5_0", 1)->plane == 4);
  REQUIRE(full.find("mlx5_1", 2) != nullptr);
  CHECK(full.find("mlx5_1", 2)->rail == 5);
  CHECK(full.find("mlx5_1", 2)->plane == -1);
  CHECK(full.find("mlx5_0", 2) == nullptr);
}

TEST_CASE("without a name all interfaces but docker, lo and virbr are chosen, each once with its first address") {
  CHECK(chosen(host(), of("")) == "eth0 192.0.2.2, eth1 192.0.2.3, eth10 192.0.2.4, v6only fd00::3");
  CHECK(chosen(host(), of("x")) == "eth0 192.0.2.2, eth1 192.0.2.3, eth10 192.0.2.4, v6only fd00::3");  // NCCL: one letter is no value
}

TEST_CASE("without a name interfaces of InfiniBand go first, and docker, lo and virbr last, in this order") {
  auto all = host();
  all.push_back(interface_at("ib0", "198.51.100.1"));
  CHECK(chosen(all, of("")) == "ib0 198.51.100.1");
  all = {interface_at("virbr0", "10.2.0.1"), interface_at("lo", "127.0.0.1"), interface_at("docker0", "10.0.0.1")};
  CHECK(chosen(all, of("")) == "docker0 10.0.0.1");
  all.pop_back();
  CHECK(chosen(all, of("")) == "lo 127.0.0.1");
  all.pop_back();
  CHECK(chosen(all, of("")) == "virbr0 10.2.0.1");
}

TEST_CASE("named interfaces are chosen, and none in their place") {
  CHECK(chosen(host(), of("eth1")) == "eth1 192.0.2.3, eth10 192.0.2.4");
  CHECK(chosen(host(), of("=eth1")) == "eth1 192.0.2.3");
  CHECK(chosen(host(), of("^eth,docker,v6")) == "lo 127.0.0.1");
  CHECK(chosen(host(), of("lo,docker")) == "lo 127.0.0.1, docker0 10.0.0.1");
  CHECK(chosen(host(), of("wlan")).empty());
}

TEST_CASE("the family chooses among an interface's addresses") {
  CHECK(chosen(host(), of("", "AF_INET")) == "eth0 192.0.2.2, eth1 192.0.2.3, eth10 192.0.2.4");
  CHECK(chosen(host(), of("", "AF_INET6")) == "eth0 fd00::2, v6only fd00::3");
  CHECK(chosen(host(), of("eth0", "AF_INET6")) == "eth0 fd00::2");
  CHECK(chosen(host(), of("lo", "AF_INET6")).empty());  // NCCL leaves ::1 out
  CHECK(chosen(host(), of("eth0", "4")) == "eth0 192.0.2.2");
}

TEST_CASE("an interface that is down, or whose address is of another kind, is not chosen") {
  auto all = std::vector{interface_at("eth0", "192.0.2.2", false), interface_at("eth1", "192.0.2.3"), interface_at("eth2", "192.0.2.4")};
  all.back().address.length = 0;
  CHECK(chosen(all, of("")) == "eth1 192.0.2.3");
  CHECK(chosen(all, of("eth0")).empty());
}

TEST_CASE("at most sixteen interfaces are chosen") {
  std::vector<NetMachine::Interface> many;
  for (int i = 0; i < 20; ++i) many.push_back(interface_at("eth" + std::to_string(i), "192.0.2.2"));
  CHECK(choose_interfaces(many, of("")).size() == 16);
}

TEST_CASE("RDMA is disabled by any number but 0, and by nothing else") {
  CHECK_FALSE(rdma_disabled({}));
  CHECK_FALSE(rdma_disabled({"", "", "", "0"}));
  CHECK_FALSE(rdma_disabled({"", "", "", "0x0"}));
  CHECK(rdma_disabled({"", "", "", "1"}));
  CHECK(rdma_disabled({"", "", "", "-1"}));
  CHECK_FALSE(rdma_disabled({"", "", "", "yes"}));
}

TEST_CASE("the rules are told as the user set them") {
  CHECK(interface_rules({}).empty());
  CHECK(interface_rules(of("eth0")) == "NCCL_SOCKET_IFNAME=eth0");
  CHECK(interface_rules(of("", "AF_INET6")) == "NCCL_SOCKET_FAMILY=AF_INET6");
  CHECK(interface_rules(of("eth0", "AF_INET")) == "NCCL_SOCKET_IFNAME=eth0 and NCCL_SOCKET_FAMILY=AF_INET");
  CHECK(interface_rules(of("", "6")).empty());
}
