// NCCL's topology files: what is read, what is written, and what is wrong in one.
#include "topo/nccl_xml.h"

#include <fmt/format.h>

#include <string>

#include "test/catch.h"
#include "test/text.h"
#include "test/topo/fake_machine.h"
#include "topo/discover.h"

using namespace gyre;
using namespace gyre::topo;

namespace {

/// Of a file of one host.
Result<Topology> read_one(const std::string& text) {
  auto hosts = read_nccl_xml(text);
  if (!hosts) return hosts.error();
  CHECK(hosts->size() == 1);
  return std::move(hosts->at(0));
}
std::string wrong(const std::string& text) {
  const auto topology = read_one(text);
  REQUIRE_FALSE(topology);
  CHECK(topology.error().code == Code::invalid_argument);
  return topology.error().what;
}
std::string in_cpu(const std::string& inside) {
  return "<system version=\"1\">\n  <cpu numaid=\"0\">\n" + inside + "\n  </cpu>\n</system>\n";
}

}  // namespace

TEST_CASE("a file of NCCL's is read: NUMA nodes, switches, GPUs and their NVLinks, NICs") {
  // As NCCL dumps them and as clouds ship them: in the second node GPUs and NICs are told by their class alone.
  const auto topology = read_one(R"(<!-- a comment -->
<system version="1">
  <cpu host_hash="0x1234" numaid="0" affinity="0000ffff,0000ffff" arch="x86_64" vendor="AuthenticAMD" familyid="175" modelid="17">
    <pci busid="0000:07:00.0" class="0x060400" vendor="0x1000" device="0xc030" link_speed="16.0 GT/s PCIe" link_width="16">
      <pci busid="0000:0B:00.0" class="0x030200" vendor="0x10de" device="0x2330" link_speed="32.0 GT/s PCIe" link_width="16">
        <gpu dev="0" sm="90" rank="0" gdr="1">
          <nvlink target="0000:ff:00.0" count="18" tclass="0x068000"/>
          <nvlink target="fffffff:ffff:ff" count="2" tclass="0x068000"/>
          <c2c bw="44712" count="10"/>
        </gpu>
      </pci>
      <pci busid="0000:0c:00.0" class="0x020700" link_speed="32.0 GT/s PCIe" link_width="16">
        <nic>
          <net name="mlx5_0" dev="0" latency="0" speed="400000" port="1" guid="0x3e2a0c00039c63b8" maxconn="131072" gdr="1"/>
        </nic>
      </pci>
      <pci busid="0000:0d:00.0" class="0x010802" link_speed="32.0 GT/s PCIe" link_width="4"/>
    </pci>
    <nic>
      <net name="eth0" dev="1" speed="10000" port="0" guid="0x0"/>
    </nic>
  </cpu>
  <cpu numaid="1" affinity="ffff0000,ffff0000" arch="x86_64">
    <pci busid="ffff:ff:02.0" class="0x060400" link_speed="16 GT/s" link_width="16">
      <pci busid="000b:00:00.0" class="0x030200" link_speed="16 GT/s" link_width="16"/>
      <pci busid="0101:00:00.0" class="0x020700" link_speed="" link_width="0"/>
    </pci>
  </cpu>
</system>
)");
  REQUIRE(topology);
  REQUIRE(topology->all<Numa>().size() == 2);
  REQUIRE(topology->all<Switch>().size() == 2);
  REQUIRE(topology->all<Nic>().size() == 3);
  const auto gpus = topology->all<Gpu>();
  REQUIRE(gpus.size() == 2);
  const Part& first = topology->part(gpus[0]);
  const Gpu& gpu = std::get<Gpu>(first.is);
  CHECK(text(first.pci->address) == "0000:0b:00.0");
  CHECK(first.pci->link.gt_per_s == 32);
  CHECK(gpu.index == 0);
  CHECK(gpu.compute_capability == 90);
  REQUIRE(gpu.nvlinks.size() == 2);
  CHECK_FALSE(gpu.nvlinks[1].target);
  CHECK(gpu.nvlinks[0].links == 18);
  CHECK(gpu.nvlinks[0].target_class == 0x068000);
  CHECK(gpu.c2c_links == 10);
  CHECK(gpu.c2c_bytes_per_s == Approx(44.712e9));
  CHECK(topology->gpu(gpus[1]).index == -1);
  const auto ways = ways_out(*topology);
  REQUIRE(ways[0].size() == 3);
  CHECK(ways[0][0].path.distance == Distance::one_switch);
  const Way& nameless = ways[1][0];  // the file does not say more of it than its place
  CHECK(topology->port(nameless.nic, nameless.port).name == "0101:00:00.0");
  CHECK(nameless.path.distance == Distance::one_switch);
  CHECK(write_nccl_xml(*topology).find("name=\"0101") == std::string::npos);
  const Port& port = topology->port(ways[0][0].nic, 0);
  CHECK(port.gbit_per_s == 400);
  CHECK(port.guid == 0x3e2a0c00039c63b8);
  CHECK(port.rdma);
}

TEST_CASE("sockets whose GUIDs are device numbers are no RDMA devices, and the faster one is the way out") {
  const auto topology =
      read_one(R"(<system version="1"><cpu numaid="0" affinity="ff" arch="x86_64" vendor="GenuineIntel" familyid="6" modelid="85">
    <pci busid="0000:00:04.0" class="0x030200" link_speed="" link_width="0"><gpu dev="0" sm="75" rank="0" gdr="0"/></pci>
    <pci busid="0000:00:06.0" class="0x020000" link_speed="" link_width="0"><nic>
      <net name="eth0" dev="0" speed="100000" port="0" guid="0x0"/></nic></pci>
    <pci busid="0000:00:07.0" class="0x020000" link_speed="" link_width="0"><nic>
      <net name="eth1" dev="1" speed="10000" port="0" guid="0x1"/></nic></pci></cpu></system>)");
  REQUIRE(topology);
  for (const int nic : topology->all<Nic>()) CHECK_FALSE(topology->port(nic, 0).rdma);
  const auto ways = ways_out(*topology);
  REQUIRE_FALSE(ways[0].empty());
  CHECK(topology->port(ways[0][0].nic, 0).name == "eth0");
}

TEST_CASE("what is written is read back, and is text that NCCL's own parser takes") {
  const test::FakeMachine machine;
  test::make_dgx(machine);
  std::vector<DriverGpu> driver(1);
  driver[0].address = *parse_pci_address("0000:13:00.0");
  driver[0].gpu = {7, 90, {{*parse_pci_address("0000:ff:00.0"), 0x068000, 18}, {std::nullopt, 0x068000, 1}}, 2, 450e9};
  auto found = discover(machine.root(), driver);
  REQUIRE(found);
  for (Part& part : found->parts) {
    if (Numa* numa = std::get_if<Numa>(&part.is)) numa->vendor = "A&B <\"C\">";
  }
  const std::string written = write_nccl_xml(*found);
  for (const char* no : {"\t", "<?xml", "  busid", " />", "  target"}) CHECK(written.find(no) == std::string::npos);
  CHECK(written.find("link_speed=\"32.0 GT/s PCIe\" link_width=\"16\"") != std::string::npos);
  CHECK(written.find("<gpu dev=\"7\" sm=\"90\">") != std::string::npos);
  CHECK(written.find("<c2c bw=\"450000\" count=\"2\"/>") != std::string::npos);
  const auto again = read_one(written);
  REQUIRE(again);
  CHECK(write_nccl_xml(*again) == written);
  REQUIRE(again->parts.size() == found->parts.size());
  CHECK(std::get<Numa>(again->parts[0].is).vendor == "A&B <\"C\">");
  const auto before = ways_out(*found), after = ways_out(*again);
  for (size_t gpu = 0; gpu < before.size(); ++gpu) {
    CHECK(after[gpu][0].path.bytes_per_s == before[gpu][0].path.bytes_per_s);
    CHECK(after[gpu][0].path.distance == before[gpu][0].path.distance);
  }
}

TEST_CASE("what a file does not say is not said by the one written from it, and what it says stays") {
  const std::string gpus =
      "    <pci busid=\"0000:1b:00.0\"><gpu sm=\"90\"><nvlink target=\"0000:1c:00.0\" count=\"2\"/>"
      "<nvlink target=\"0000:1c:00.0\" count=\"3\"/></gpu></pci>\n"
      "    <pci busid=\"0000:1c:00.0\" class=\"0x030200\" link_width=\"255\"/>";
  auto read = read_one(in_cpu(gpus));
  REQUIRE(read);
  std::get<Numa>(read->parts[0].is).cpus = std::string(254, 'f');
  const std::string written = write_nccl_xml(*read);
  for (const char* no : {"vendor", "device", "link_", "\"\"", "0x0000", "affinity", "dev="}) CHECK(written.find(no) == written.npos);
  CHECK(written.find("<cpu numaid=\"0\">") != written.npos);
  const auto again = read_one(written);
  REQUIRE(again);
  const auto both = again->all<Gpu>();
  REQUIRE(both.size() == 2);
  CHECK(std::get<Gpu>(again->parts[1].is).compute_capability == 90);
  CHECK(nvlinks(*again, both[0], both[1]) == 5);
  CHECK(nvlinks(*again, both[1], both[0]) == 5);  // though only one of them tells
  CHECK(write_nccl_xml(*again) == written);
  const auto nowhere = read_one("<system version=\"1\"><cpu numaid=\"-1\"/></system>");
  REQUIRE(nowhere);
  CHECK(write_nccl_xml(*nowhere).find("numaid=\"-1\"") != std::string::npos);
}

TEST_CASE("NVLinks that end at processors join no GPUs") {
  const auto linked = [](const std::string& target_class) {
    std::string gpus;
    for (const char* number : {"1", "2"})
      gpus += std::string("<pci busid=\"0000:0") + number + ":00.0\" class=\"0x030200\"><gpu dev=\"" + number +
              "\"><nvlink target=\"0004:0" + number + ":01.0\" count=\"3\" tclass=\"" + target_class + "\"/></gpu></pci>";
    const auto topology = read_one(in_cpu(gpus));
    REQUIRE(topology);
    return nvlinks(*topology, 1, 2);
  };
  CHECK(linked("0x068001") == 0);
  CHECK(linked("0x068000") == 3);
}

TEST_CASE("a host of more GPUs than NCCL has room for is refused") {
  const auto with = [](int count) {
    std::string gpus;
    for (int i = 0; i < count; ++i) gpus += fmt::format("<pci busid=\"{:04x}:01:00.0\" class=\"0x030200\"><gpu dev=\"{}\"/></pci>", i, i);
    return in_cpu(gpus);
  };
  CHECK(wrong(with(577)) == "1:2: a host of 577 GPUs, must have 576 at most");
  CHECK(read_one(with(576)));
}

TEST_CASE("what is wrong in a file is named with its line and column") {
  CHECK(wrong("").starts_with("1:1: "));
  CHECK(wrong("<system version=\"1\">\n  <cpu").starts_with("2:"));
  CHECK(wrong("<graphs version=\"1\"/>") == "1:2: <graphs> is not <system>");
  CHECK(wrong("<system version=\"2\"/>") == "1:2: version 2 of <system>, not 1");
  CHECK(wrong("<system/>") == "1:2: version 0 of <system>, not 1");
  CHECK(wrong("<system version=\"1\"></system>") == "1:2: <system> has no <cpu>");
  CHECK(wrong("<system version=\"1\">\n  <cpu numaid=\"zero\"/>\n</system>") ==
        "2:4: numaid=\"zero\" of <cpu> is not a whole number up to 2147483647");
  CHECK(wrong(in_cpu("    <pci class=\"0x030200\"/>")) == "3:6: busid=\"\" of <pci> is not a PCI address such as 0000:1b:00.0");
  CHECK(wrong(in_cpu("<pci busid=\"0000:01:00.0\" link_width=\"x16\"/>")) ==
        "3:2: link_width=\"x16\" of <pci> is not a whole number up to 2147483647");
  CHECK(wrong(in_cpu("<pci busid=\"0000:01:00.0\" class=\"0x\"/>")) == "3:2: class=\"0x\" of <pci> is not a whole number up to 16777215");
  const std::string gpu = "<pci busid=\"0000:01:00.0\" class=\"0x030200\">";
  CHECK(wrong(in_cpu(gpu + "<gpu dev=\"0\"><nvlink target=\"all\"/></gpu></pci>")).find("target=\"all\" of <nvlink>") != std::string::npos);
  CHECK(wrong(in_cpu(gpu + "</pci>\n" + gpu + "</pci>")) == "4:2: busid 0000:01:00.0 is there twice; 3:2: the first");
  std::string deep;
  for (int i = 0; i < 70; ++i) deep += "<pci busid=\"0000:" + std::to_string(10 + i) + ":00.0\" class=\"0x060400\">";
  for (int i = 0; i < 70; ++i) deep += "</pci>";
  CHECK(wrong(in_cpu(deep)).find("<pci> inside 64 others") != std::string::npos);
}

// As NCCL dumps a job on GB200 NVL72: the trays' addresses are the same, and NVLinks end at what no host shows.
TEST_CASE("a dump of several hosts whose NVLinks go to a fabric is read host by host") {
  const auto gpu = [](const std::string& domain, int dev, const std::string& target) {
    return "<pci busid=\"" + domain +
           ":06:00.0\" class=\"0x030200\" vendor=\"0x10de\" device=\"0x2941\" link_speed=\"32.0 GT/s PCIe\" "
           "link_width=\"16\"><gpu dev=\"" +
           std::to_string(dev) + "\" sm=\"100\" rank=\"" + std::to_string(dev) + "\" gdr=\"1\">" +
           (target.empty() ? "" : "<nvlink target=\"" + target + "\" count=\"18\" tclass=\"0x068000\"/>") +
           "<c2c bw=\"44712\" count=\"10\"/></gpu></pci>\n";
  };
  const auto nic = [](const std::string& domain, int number) {
    const std::string digit = std::to_string(number);
    return "<pci busid=\"" + domain +
           ":03:00.0\" class=\"0x020700\" vendor=\"0x15b3\" device=\"0x1021\" link_speed=\"32.0 GT/s PCIe\" "
           "link_width=\"16\"><nic><net name=\"mlx5_" +
           digit + "\" dev=\"" + digit +
           "\" latency=\"0\" speed=\"400000\" port=\"1\" "
           "guid=\"0x3e2a0c00039c63b" +
           digit + "\" maxconn=\"131072\" gdr=\"1\" net=\"1\" gin=\"1\"/></nic></pci>\n";
  };
  const auto cpu = [](const std::string& hash, int numa, const std::string& inside) {
    return "<cpu host_hash=\"" + hash + "\" numaid=\"" + std::to_string(numa) + "\" affinity=\"ff,ffffffff\" arch=\"arm64\">\n" + inside +
           "</cpu>\n";
  };
  const std::string fabric = "fffffff:ff:ff.0", first = "0x5b1c7e1d9f3a2c41", second = "0x8e02d4466b71aa90";
  const std::string text = "<system version=\"1\">\n" +
                           cpu(first, 0, gpu("0008", 0, fabric) + gpu("0009", 1, "fffffff:ffff:ff") + nic("0000", 0) + nic("0002", 1)) +
                           cpu(first, 1, gpu("0018", 2, fabric) + gpu("0019", 3, fabric) + nic("0010", 2) + nic("0012", 3)) +
                           cpu(second, 0, gpu("0008", 0, fabric) + gpu("0009", 1, "") + nic("0000", 0)) + "</system>\n";
  const auto hosts = read_nccl_xml(text);
  INFO(test::error_of(hosts));
  REQUIRE(hosts);
  REQUIRE(hosts->size() == 2);
  const Topology &tray = hosts->at(0), &other = hosts->at(1);
  const auto gpus = tray.all<Gpu>(), others = other.all<Gpu>();
  REQUIRE(gpus.size() == 4);
  REQUIRE(others.size() == 2);
  for (const int from : gpus) {
    for (const int to : gpus) CHECK((from == to || nvlinks(tray, from, to) == 18));
    CHECK(tray.gpu(from).c2c_links == 10);
    CHECK_FALSE(tray.gpu(from).nvlinks.at(0).target);
  }
  CHECK(nvlinks(other, others[0], others[1]) == 0);  // one of them has lost its links
  CHECK(tray.all<Numa>().size() == 2);
  CHECK(ways_out(tray)[2][0].path.distance == Distance::host_bridge);
  CHECK(tray.port(ways_out(tray)[3][0].nic, 0).name == "mlx5_3");
  const auto again = read_one(write_nccl_xml(tray));
  REQUIRE(again);
  CHECK(nvlinks(*again, gpus[0], gpus[3]) == 18);
  const std::string twice =
      "<system version=\"1\">\n" + cpu(first, 0, gpu("0008", 0, fabric)) + cpu(first, 1, gpu("0008", 1, fabric)) + "</system>\n";
  CHECK(wrong(twice).starts_with("6:2: busid 0008:06:00.0 is there twice; 3:2: "));
}

TEST_CASE("every beginning of a file, and the file with a byte changed, is read or refused") {
  const std::string text = in_cpu(
      "<pci busid=\"0000:01:00.0\" class=\"0x030200\" link_width=\"16\"><gpu dev=\"1\" sm=\"90\"/></pci><nic><net name=\"a\" "
      "speed=\"1\"/></nic>");
  REQUIRE(read_one(text));
  for (size_t length = 0; length < text.size(); ++length) {
    if (length + 1 < text.size()) CHECK_FALSE(read_one(text.substr(0, length)));
    for (const char byte : {'<', '"', '\0', '9', '\xff'}) {
      std::string changed = text;
      changed[length] = byte;
      const auto topology = read_one(changed);
      if (topology) write_nccl_xml(*topology);
    }
  }
}
