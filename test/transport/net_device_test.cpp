// The devices of machines that are not here: their sysfs is a temporary folder, their interfaces and what UCX says are data.
#include "transport/net_device.h"

#include <arpa/inet.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>

#include "base/log.h"
#include "test/catch.h"

using namespace gyre;
using namespace gyre::transport;

namespace {

namespace fs = std::filesystem;

std::vector<std::string> warnings;
void keep_warning(log::Level level, std::string_view line) {
  if (level == log::Level::warn) warnings.emplace_back(line);
}

class InventedMachine {
 public:
  InventedMachine() {
    std::string pattern = (fs::temp_directory_path() / "gyre-sysfs-XXXXXX").string();
    REQUIRE(mkdtemp(pattern.data()) != nullptr);
    facts.sysfs = fs::canonical(pattern);
    facts.host = "invented";
    warnings.clear();
    log::set_sink(keep_warning);
  }
  ~InventedMachine() {
    log::set_sink(nullptr);
    std::error_code ignored;
    fs::remove_all(facts.sysfs, ignored);
  }
  InventedMachine(const InventedMachine&) = delete;
  InventedMachine& operator=(const InventedMachine&) = delete;

  void put(const std::string& file, const std::string& line) const {
    fs::create_directories((facts.sysfs / file).parent_path());
    std::ofstream(facts.sysfs / file) << line << "\n";
  }
  void link(const std::string& from, const std::string& to) const {
    fs::create_directories((facts.sysfs / from).parent_path());
    fs::create_directories(facts.sysfs / to);
    fs::create_directory_symlink(facts.sysfs / to, facts.sysfs / from);
  }
  std::string pci(const std::string& address) const { return (facts.sysfs / "devices/pci0000:00" / address).string(); }

  /// A port of an RDMA device that is up; UCX knows it. Without an address: not on PCI.
  void rdma(const std::string& device, int port, const std::string& address, const std::string& guid, const std::string& rate) {
    const std::string folder = "class/infiniband/" + device + "/";
    const std::string port_folder = folder + "ports/" + std::to_string(port) + "/";
    if (!address.empty() && !fs::exists(facts.sysfs / (folder + "device"))) link(folder + "device", "devices/pci0000:00/" + address);
    put(folder + "sys_image_guid", guid);
    put(folder + "node_guid", "0000:0000:0000:0009");
    put(port_folder + "state", "4: ACTIVE");
    put(port_folder + "rate", rate);
    facts.ucx.push_back({device + ":" + std::to_string(port), 5e9, 0.5F});
  }
  void state(const std::string& device, int port, const std::string& text) const {
    put("class/infiniband/" + device + "/ports/" + std::to_string(port) + "/state", text);
  }
  /// RoCE's way to name the interface of a port.
  void roce(const std::string& device, int port, const std::string& interface) const {
    put("class/infiniband/" + device + "/ports/" + std::to_string(port) + "/gid_attrs/ndevs/0", interface);
  }
  /// IPoIB's, whose interfaces hang below the function.
  void ipoib(const std::string& address, const std::string& interface, int dev_port) const {
    put("devices/pci0000:00/" + address + "/net/" + interface + "/dev_port", std::to_string(dev_port));
  }
  void has_address(const std::string& name, const char* address, bool running = true) {
    NetMachine::Interface i;
    i.name = name;
    i.running = running;
    i.loopback = name == "lo";
    if (inet_pton(AF_INET, address, &reinterpret_cast<sockaddr_in*>(&i.address.bytes)->sin_addr) == 1) {
      i.address.bytes.ss_family = AF_INET;
      i.address.length = sizeof(sockaddr_in);
    } else {
      REQUIRE(inet_pton(AF_INET6, address, &reinterpret_cast<sockaddr_in6*>(&i.address.bytes)->sin6_addr) == 1);
      i.address.bytes.ss_family = AF_INET6;
      i.address.length = sizeof(sockaddr_in6);
    }
    facts.interfaces.push_back(i);
  }
  /// An interface with an address that UCX's tcp can use.
  void socket(const std::string& name, const char* address, const std::string& mac, const std::string& speed) {
    put("class/net/" + name + "/address", mac);
    put("class/net/" + name + "/speed", speed);
    has_address(name, address);
    facts.ucx.push_back({name, 12e6, 10.0F});
  }

  std::vector<NetDevice> devices(const NetFilter& filter = {}) const {
    auto found = choose_net_devices(facts, filter);
    INFO((found ? "" : found.error().what));
    REQUIRE(found);
    return *found;
  }
  std::string names(const NetFilter& filter = {}) const {
    std::string line;
    for (const auto& d : devices(filter)) line += (line.empty() ? "" : " ") + d.name;
    return line;
  }
  std::string error(const NetFilter& filter = {}) const {
    const auto found = choose_net_devices(facts, filter);
    REQUIRE_FALSE(found);
    return found.error().what;
  }

  NetMachine facts;
};

NetFilter hca(const std::string& list) { return {"", "", list, ""}; }
NetFilter ifname(const std::string& list) { return {list, "", "", ""}; }

/// One card with two ports, each a function of its own as mlx5 has it, with IPoIB; and a management network.
void add_two_port_card(InventedMachine& m) {
  m.socket("eth0", "192.0.2.2", "02:00:00:00:00:01", "1000");
  m.rdma("mlx5_1", 1, "0000:3b:00.1", "0c42:a103:00b5:4f1c", "200 Gb/sec (4X HDR)");
  m.rdma("mlx5_0", 1, "0000:3b:00.0", "0c42:a103:00b5:4f1c", "100 Gb/sec (4X EDR)");
  m.ipoib("0000:3b:00.0", "ib0", 0);
  m.has_address("ib0", "198.51.100.1");
}

}  // namespace

TEST_CASE("the ports of one card are devices of one chip, in the order of their addresses") {
  InventedMachine m;
  add_two_port_card(m);
  const auto found = m.devices();
  REQUIRE(found.size() == 2);
  CHECK(found[0].name == "mlx5_0:1");
  CHECK(found[1].name == "mlx5_1:1");
  CHECK(found[0].pci_path == m.pci("0000:3b:00.0"));
  CHECK(found[1].pci_path == found[0].pci_path);
  CHECK(found[0].guid == 0x0c42a10300b54f1c);
  CHECK(found[1].guid == found[0].guid);
  CHECK(found[0].port == 1);
  CHECK(found[1].port == 2);
  CHECK(found[0].mbit_per_s == 100000);
  CHECK(found[1].mbit_per_s == 200000);
  CHECK(found[0].latency_us == 0.5F);
  CHECK((found[0].rdma && !found[0].loopback));
}

TEST_CASE("an RDMA device listens at its own interface, and else at the first one that NCCL would take") {
  InventedMachine m;
  add_two_port_card(m);
  auto found = m.devices();
  CHECK(found[0].interface == "ib0");
  CHECK(text(found[0].address) == "198.51.100.1");
  CHECK(found[1].interface == "ib0");
  found = m.devices(ifname("eth"));
  CHECK(found[0].interface == "eth0");
  CHECK(text(found[0].address) == "192.0.2.2");
  CHECK(found[1].interface == "eth0");
}

TEST_CASE("the ports of one function are told apart by their interfaces' port") {
  InventedMachine m;
  m.rdma("mlx4_0", 1, "0000:05:00.0", "0002:c903:0000:0001", "56 Gb/sec (4X FDR)");
  m.rdma("mlx4_0", 2, "0000:05:00.0", "0002:c903:0000:0001", "56 Gb/sec (4X FDR)");
  m.ipoib("0000:05:00.0", "ib0", 0);
  m.ipoib("0000:05:00.0", "ib1", 1);
  m.has_address("ib0", "198.51.100.1");
  m.has_address("ib1", "198.51.100.2");
  const auto found = m.devices();
  REQUIRE(found.size() == 2);
  CHECK(found[0].interface == "ib0");
  CHECK(found[1].interface == "ib1");
  CHECK(found[0].port == 1);
  CHECK(found[1].port == 2);
  m.state("mlx4_0", 1, "1: DOWN");
  CHECK(m.names() == "mlx4_0:2");
  CHECK(m.devices()[0].port == 2);
}

TEST_CASE("a port that is not active is not offered") {
  InventedMachine m;
  add_two_port_card(m);
  for (const char* state : {"1: DOWN", "2: INIT", "3: ARMED", "5: ACTIVE_DEFER", "", "junk"}) {
    m.state("mlx5_0", 1, state);
    CHECK(m.names() == "mlx5_1:1");
  }
  m.state("mlx5_1", 1, "1: DOWN");
  CHECK(m.names() == "eth0");
}

TEST_CASE("RoCE devices are listed and their interfaces are not") {
  InventedMachine m;
  for (int i = 0; i < 4; ++i) {
    const std::string n = std::to_string(i);
    m.rdma("mlx5_" + n, 1, "0000:" + std::to_string(80 - 10 * i) + ":00.0", "0c42:a103:00b5:000" + n, "400 Gb/sec (4X NDR)");
    m.roce("mlx5_" + n, 1, "ens" + n);
    m.socket("ens" + n, ("192.0.2.1" + n).c_str(), "02:00:00:00:00:0" + n, "400000");
  }
  CHECK(m.names() == "mlx5_3:1 mlx5_2:1 mlx5_1:1 mlx5_0:1");
  const auto found = m.devices();
  CHECK(found[0].interface == "ens3");
  CHECK(text(found[0].address) == "192.0.2.13");
  CHECK(std::ranges::all_of(found, [](const NetDevice& d) { return d.port == 1; }));
  CHECK(m.names({"", "", "", "1"}) == "ens0 ens1 ens2 ens3");
}

TEST_CASE("an RDMA device without PCI function goes last and has no path") {
  InventedMachine m;
  m.rdma("rxe0", 1, "", "0a00:27ff:fe00:0001", "2.5 Gb/sec (1X SDR)");
  m.roce("rxe0", 1, "eth0");
  m.rdma("zz0", 1, "0000:3b:00.0", "0c42:a103:00b5:4f1c", "100 Gb/sec (4X EDR)");
  m.socket("eth0", "192.0.2.2", "02:00:00:00:00:01", "-1");
  const auto found = m.devices();
  REQUIRE(found.size() == 2);
  CHECK(found[1].name == "rxe0:1");
  CHECK(found[1].pci_path.empty());
  CHECK(found[1].mbit_per_s == 2500);
  CHECK(found[1].interface == "eth0");
}

TEST_CASE("NCCL_IB_HCA chooses devices and ports, and says their rail and plane") {
  InventedMachine m;
  add_two_port_card(m);
  CHECK(m.names(hca("mlx5_1")) == "mlx5_1:1");
  CHECK(m.names(hca("=mlx5_1:1")) == "mlx5_1:1");
  CHECK(m.names(hca("mlx5")) == "mlx5_0:1 mlx5_1:1");
  CHECK(m.names(hca("^mlx5_1")) == "mlx5_0:1");
  CHECK(m.names(hca("^=mlx5")) == "mlx5_0:1 mlx5_1:1");
  const auto found = m.devices(hca("mlx5_0:1:2:7,mlx5_1"));
  CHECK(found[0].rail == 2);
  CHECK(found[0].plane == 7);
  CHECK(found[1].rail == -1);
  CHECK(warnings.empty());
}

TEST_CASE("NCCL_IB_HCA that fits no device is warned of, and interfaces are offered") {
  InventedMachine m;
  add_two_port_card(m);
  m.facts.ucx.push_back({"ib0", 1e9, 5.0F});
  CHECK(m.names(hca("mlx5_0:2,bnxt")) == "ib0");
  REQUIRE(warnings.size() == 1);
  CHECK(warnings[0].find("NCCL_IB_HCA=mlx5_0:2,bnxt accepts none of the RDMA devices that are up: mlx5_1:1, mlx5_0:1") !=
        std::string::npos);
}

TEST_CASE("an RDMA device that no interface leads to is an error that says so") {
  InventedMachine m;
  m.rdma("mlx5_0", 1, "0000:3b:00.0", "0c42:a103:00b5:4f1c", "100 Gb/sec (4X EDR)");
  CHECK(m.error() ==
        "mlx5_0:1 needs an address to be found at, but no network interface can be used; there are: none; UCX can use: mlx5_0:1");
  m.has_address("eth0", "192.0.2.2");
  CHECK(m.names() == "mlx5_0:1");
  CHECK(m.error(ifname("foo")) ==
        "mlx5_0:1 needs an address to be found at, but no network interface fits NCCL_SOCKET_IFNAME=foo; there are: eth0 192.0.2.2; UCX "
        "can use: "
        "mlx5_0:1");
}

TEST_CASE("an interface's facts are those of its files") {
  InventedMachine m;
  m.socket("eth0", "192.0.2.2", "02:fc:00:00:00:01", "25000");
  m.link("class/net/eth0/device", "devices/pci0000:00/0000:00:03.0/virtio2");
  const auto d = m.devices().at(0);
  CHECK(d.name == "eth0");
  CHECK(d.interface == "eth0");
  CHECK(text(d.address) == "192.0.2.2");
  CHECK(d.pci_path == m.pci("0000:00:03.0"));
  CHECK(d.guid == 0x02fc00000001);
  CHECK(d.mbit_per_s == 25000);
  CHECK(d.latency_us == 10.0F);
  CHECK(d.port == 1);
  CHECK((!d.rdma && !d.loopback));
}

TEST_CASE("junk in an interface's files is as if it were not there") {
  for (const char* junk : {"-1", "0", "", "fast", "4294967295", "99999999999999999999"}) {
    InventedMachine m;
    m.socket("eth0", "192.0.2.2", "zz:00:00:00:00:01", junk);
    m.socket("eth1", "192.0.2.3", "00:00:00:00:00:00", junk);
    m.put("class/net/eth0/device", "no link");
    const auto found = m.devices();
    REQUIRE(found.size() == 2);
    CHECK(found[0].mbit_per_s == 0);
    CHECK(found[0].pci_path.empty());
    CHECK(found[0].guid != 0);
    CHECK(found[0].guid != found[1].guid);
    CHECK(found[0].guid == m.devices()[0].guid);
  }
}

TEST_CASE("junk in an RDMA device's files leaves it its name and UCX's speed") {
  InventedMachine m;
  m.has_address("eth0", "192.0.2.2");
  m.rdma("mlx5_0", 1, "0000:3b:00.0", "not a guid", "unknown");
  m.rdma("mlx5_1", 1, "0000:3c:00.0", "0000:0000:0000:0000", "-5 Gb/sec");
  m.put("class/infiniband/mlx5_1/node_guid", "");
  m.put("class/infiniband/mlx5_1/ports/1/gid_attrs/ndevs/0", "nosuchif");
  const auto found = m.devices();
  REQUIRE(found.size() == 2);
  CHECK(found[0].guid == 9);  // the function's, where there is none of the chip
  CHECK(found[1].guid != 0);
  CHECK(found[1].guid != found[0].guid);
  CHECK(found[0].mbit_per_s == 40000);
  CHECK(found[1].mbit_per_s == 40000);
  CHECK(found[1].interface == "eth0");
}

TEST_CASE("loopback is offered where nothing else is, or where it is named") {
  InventedMachine m;
  m.socket("lo", "127.0.0.1", "00:00:00:00:00:00", "");
  CHECK(m.names() == "lo");
  CHECK(m.devices()[0].loopback);
  CHECK(m.devices()[0].pci_path.empty());
  m.socket("docker0", "10.0.0.1", "02:42:00:00:00:01", "10000");
  CHECK(m.names() == "docker0");
  m.socket("eth0", "192.0.2.2", "02:00:00:00:00:01", "1000");
  CHECK(m.names() == "eth0");
  CHECK(m.names(ifname("lo")) == "lo");
  CHECK(m.names(ifname("=lo,eth0")) == "lo eth0");
}

TEST_CASE("an interface that UCX does not know is passed over") {
  InventedMachine m;
  m.has_address("br0", "10.1.0.1");
  m.socket("lo", "127.0.0.1", "00:00:00:00:00:00", "");
  CHECK(m.names() == "lo");
  m.facts.unused_by_ucx = {"br0 (UCX_NET_DEVICES=lo)"};
  CHECK(m.error(ifname("br")) ==
        "no network interface fits NCCL_SOCKET_IFNAME=br; there are: br0 10.1.0.1, lo 127.0.0.1; UCX can use: lo; and not: br0 "
        "(UCX_NET_DEVICES=lo)");
}

TEST_CASE("variables that leave nothing are named with their values and with what there is") {
  InventedMachine m;
  m.socket("eth0", "192.0.2.2", "02:00:00:00:00:01", "1000");
  m.has_address("eth1", "192.0.2.3", false);
  CHECK(m.error({"eth1", "AF_INET6", "", ""}) ==
        "no network interface fits NCCL_SOCKET_IFNAME=eth1 and NCCL_SOCKET_FAMILY=AF_INET6; there are: eth0 192.0.2.2, eth1 192.0.2.3 "
        "(down); "
        "UCX can use: eth0");
  CHECK(choose_net_devices(m.facts, ifname("eth1")).error().code == Code::invalid_usage);
}

TEST_CASE("values that NCCL ignores are warned of") {
  InventedMachine m;
  m.socket("eth0", "192.0.2.2", "02:00:00:00:00:01", "1000");
  CHECK(m.names({"", "ipv4", "", "true"}) == "eth0");
  REQUIRE(warnings.size() == 2);
  CHECK(warnings[0].find("NCCL_SOCKET_FAMILY=ipv4") != std::string::npos);
  CHECK(warnings[1].find("NCCL_IB_DISABLE=true") != std::string::npos);
}

TEST_CASE("an interface with addresses of both families has that of the wanted one") {
  InventedMachine m;
  m.socket("eth0", "192.0.2.2", "02:00:00:00:00:01", "1000");
  m.has_address("eth0", "fd00::2");
  CHECK(text(m.devices()[0].address) == "192.0.2.2");
  const auto found = m.devices({"", "AF_INET6", "", ""});
  REQUIRE(found.size() == 1);
  CHECK(text(found[0].address) == "fd00::2");
  CHECK(found[0].address.bytes.ss_family == AF_INET6);
  CHECK(found[0].address.length == sizeof(sockaddr_in6));
}

TEST_CASE("where UCX may use only the host's memory, one interface is offered to be found at, with the memory's speed") {
  InventedMachine m;
  m.socket("lo", "127.0.0.1", "00:00:00:00:00:00", "");
  m.socket("eth0", "192.0.2.2", "02:00:00:00:00:01", "1000");
  m.socket("eth1", "192.0.2.3", "02:00:00:00:00:02", "1000");
  m.facts.ucx.clear();
  m.facts.shared_memory = NetMachine::UcxDevice{"memory", 10e9, 0.1F};
  const auto found = m.devices();
  REQUIRE(found.size() == 1);
  CHECK(found[0].name == "eth0");
  CHECK(found[0].mbit_per_s == 80000);
  CHECK(found[0].latency_us == 0.1F);
  CHECK(m.names(ifname("eth1")) == "eth1");
}

TEST_CASE("interfaces that share a NIC's address are ports of one chip") {
  InventedMachine m;
  m.socket("eth0", "192.0.2.2", "02:00:00:00:00:01", "1000");
  m.socket("eth0.7", "192.0.2.3", "02:00:00:00:00:01", "1000");
  m.socket("eth1", "192.0.2.4", "02:00:00:00:00:02", "1000");
  const auto found = m.devices();
  REQUIRE(found.size() == 3);
  CHECK(found[0].guid == found[1].guid);
  CHECK(found[1].port == 2);
  CHECK(found[2].guid != found[0].guid);
  CHECK(found[2].port == 1);
}

TEST_CASE("a NIC is listed once, by whoever can use it, and says whether verbs can") {
  InventedMachine machine;
  machine.has_address("eth0", "192.0.2.2");
  machine.rdma("mlx5_0", 1, "0000:00:05.0", "0c42:a103:00b5:4f1c", "100 Gb/sec (4X EDR)");
  machine.rdma("mlx5_1", 1, "0000:00:06.0", "0c42:a103:00b5:4f1d", "100 Gb/sec (4X EDR)");
  machine.rdma("mlx5_2", 1, "0000:00:07.0", "0c42:a103:00b5:4f1e", "100 Gb/sec (4X EDR)");
  machine.facts.ucx.pop_back();  // which UCX_NET_DEVICES leaves out
  machine.facts.verbs = {{"mlx5_0:1", "RoCE v2 192.0.2.2", ""}, {"mlx5_1:1", "", "no GID fits"}, {"mlx5_2:1", "RoCE v2 192.0.2.4", ""}};
  const auto found = machine.devices();
  REQUIRE(found.size() == 3);
  CHECK((found[0].ucx && found[0].verbs && found[0].verbs_words == "RoCE v2 192.0.2.2"));
  CHECK((found[1].ucx && !found[1].verbs && found[1].verbs_words == "no GID fits"));
  CHECK((!found[2].ucx && found[2].verbs && found[2].mbit_per_s == 100000));
}

TEST_CASE("where verbs alone may be used and can't, the error says of each port why") {
  InventedMachine machine;
  machine.has_address("eth0", "192.0.2.2");
  machine.facts.verbs_only = true;
  const auto none = choose_net_devices(machine.facts, {});
  REQUIRE_FALSE(none);
  CHECK(none.error().what.find("there is none in ") != std::string::npos);
  machine.rdma("mlx5_0", 1, "0000:00:05.0", "0c42:a103:00b5:4f1c", "100 Gb/sec (4X EDR)");
  machine.facts.ucx.clear();
  machine.facts.verbs = {{"mlx5_0:1", "", "no GID fits"}};
  const auto unfit = choose_net_devices(machine.facts, {});
  REQUIRE_FALSE(unfit);
  CHECK(unfit.error().what == "verbs can use no RDMA port of this machine: mlx5_0:1: no GID fits");
}
