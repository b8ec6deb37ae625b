// What ranks say of their GPUs: of machines that are not here, and as texts.
#include "topo/gpu_row.h"

#include "test/catch.h"
#include "test/text.h"
#include "test/topo/fake_machine.h"
#include "topo/discover.h"

using namespace gyre;
using namespace gyre::topo;
using test::error_of;
using test::FakeMachine;

namespace {

GpuRow row_at(const Topology& topology, const std::string& address) { return *gpu_row(topology, *parse_pci_address(address)); }

}  // namespace

TEST_CASE("a rank knows how far its GPU is from the others, and the port beside it") {
  const FakeMachine machine;
  test::make_dgx(machine);
  const auto topology = *discover(machine.root());
  const GpuRow row = row_at(topology, "0000:33:00.0");
  CHECK(row.gpu == "0000:33:00.0");
  REQUIRE(row.others.size() == 7);
  CHECK(row.others[0] == GpuRow::Other{"0000:13:00.0", Distance::host_bridge, 0});
  CHECK(row.others[6] == GpuRow::Other{"0000:83:00.0", Distance::system, 0});
  CHECK(row.rails == std::vector<std::string>{"mlx5_2:1"});
  CHECK(error_of(gpu_row(topology, *parse_pci_address("0000:01:00.0"))) == "this machine shows no GPU at 0000:01:00.0");
}

TEST_CASE("the port by which a GPU goes out stands first, whatever the ports' order, and a port on too narrow a path is none") {
  for (const std::string speed : {"32.0 GT/s PCIe", "16.0 GT/s PCIe"}) {
    const FakeMachine machine;
    machine.x86();
    machine.numa(0, "ff");
    machine.gpu("0000:10/0000:10:00.0", 0);
    const std::string narrow = machine.pci("0000:20/0000:20:00.0", {"0x020700", "0x15b3", 0, speed, 8, 8});
    machine.rdma(narrow, "mlx5_0", "200 Gb/sec (4X HDR)");
    machine.rdma(machine.nic("0000:21/0000:21:00.0", 0), "mlx5_1", "200 Gb/sec (4X HDR)");
    const std::vector<std::string> both{"mlx5_1:1", "mlx5_0:1"}, one{"mlx5_1:1"};
    INFO(speed);
    CHECK(row_at(*discover(machine.root()), "0000:10:00.0").rails == (speed == "32.0 GT/s PCIe" ? both : one));
  }
}

TEST_CASE("and the NVLinks between them") {
  const FakeMachine machine;
  test::make_dgx(machine);
  DriverGpu one{*parse_pci_address("0000:13:00.0"), {}}, two{*parse_pci_address("0000:23:00.0"), {}};
  one.gpu.nvlinks = {{two.address, pci_gpu, 2}, {std::nullopt, pci_nvswitch, 4}};
  const auto topology = *discover(machine.root(), std::vector{one, two});
  CHECK(row_at(topology, "0000:13:00.0").switched == 4);
  CHECK(row_at(topology, "0000:13:00.0").others[0].direct == 2);
  CHECK(row_at(topology, "0000:23:00.0").others[0].direct == 2);
  CHECK(row_at(topology, "0000:23:00.0").switched == 0);
}

TEST_CASE("a row is the same after it was a text") {
  const GpuRow row{"0000:13:00.0", 18, {{"0000:23:00.0", Distance::host_bridge, 2}}, {"mlx5_0:1", "eth\"0"}};
  const auto read = parse_gpu_row(text(row));
  INFO(error_of(read));
  REQUIRE(read);
  CHECK(*read == row);
  const auto odd = parse_gpu_row(text(GpuRow{"\xff", 0, {}, {}}));  // no network has more than its name wrong
  CHECK(odd);
}

TEST_CASE("texts that are no rows are errors that say what is wrong") {
  const auto said = [](const std::string& text) { return error_of(parse_gpu_row(text)); };
  for (const char* junk : {"", "{", "\xff\xfe"}) CHECK(said(junk).starts_with("what a rank says of its GPU: is not JSON: line 1, column "));
  for (const char* junk : {"[]", "7", "null"}) CHECK(said(junk) == "what a rank says of its GPU: must be an object");
  CHECK(said("{}") == "what a rank says of its GPU: gpu: is missing");
  CHECK(said(R"({"gpu":1})") == "what a rank says of its GPU: gpu = 1: must be a text");
  CHECK(said(R"({"gpu":"a","switched":-1})") == "what a rank says of its GPU: switched = -1: must be from 0 to 1048576");
  CHECK(said(R"({"gpu":"a","switched":0,"others":{},"rails":[]})") ==
        "what a rank says of its GPU: others = {}: must be a list of at most 4096");
  CHECK(said(R"({"gpu":"a","switched":0,"others":[1],"rails":[]})") == "what a rank says of its GPU: others: must be an object");
  CHECK(said(R"({"gpu":"a","switched":0,"others":[{"gpu":"b","distance":5,"direct":0}],"rails":[]})") ==
        "what a rank says of its GPU: others.distance = 5: is none");
  CHECK(said(R"({"gpu":"a","switched":0,"others":[],"rails":[3]})") == "what a rank says of its GPU: rails = [3]: must be names");
  CHECK(said(R"({"gpu":"a","mood":"good"})").find("mood = \"good\": unknown") != std::string::npos);
}

TEST_CASE("a row that is deeper than any, or says something twice, is refused") {
  CHECK_FALSE(parse_gpu_row("{\"gpu\":" + std::string(500'000, '[')));
  CHECK_FALSE(parse_gpu_row("{\"gpu\":" + std::string(500'000, '[') + std::string(500'000, ']') + "}"));
  CHECK_FALSE(parse_gpu_row(R"({"gpu":"a","gpu":"b","others":[],"rails":[],"switched":0})"));
}
