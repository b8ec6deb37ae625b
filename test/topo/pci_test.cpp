#include "topo/pci.h"

#include "test/catch.h"

using namespace gyre::topo;

TEST_CASE("PCI addresses are read as sysfs and NVML write them, and nothing else is one") {
  const auto address = parse_pci_address("00000000:1B:02.7");
  REQUIRE(address);
  CHECK(*address == PciAddress{0, 0x1b, 2, 7});
  CHECK(text(*address) == "0000:1b:02.7");
  CHECK(text(*parse_pci_address("10000:01:00.0")) == "10000:01:00.0");
  CHECK(parse_pci_address("ffff:ff:1f.0"));
  for (const char* wrong : {"", "1b:00.0", "000:1b:00.0", "0000:1b:00.8", "0000:1b:20.0", "0000:1b:00.", "0000:1b:00.0 ", " 0000:1b:00.0",
                            "0000:1b:00:0", "0000:1g:00.0", "0000:+b:00.0", "123456789:1b:00.0", "pci0000:00"}) {
    CAPTURE(wrong);
    CHECK_FALSE(parse_pci_address(wrong));
  }
}

TEST_CASE("a link's rate is its lanes' after the line code") {
  CHECK(PciLink{2.5, 1, 1}.bytes_per_s() == Approx(250e6));
  CHECK(PciLink{8, 16, 16}.bytes_per_s() == Approx(15.754e9).epsilon(1e-4));
  CHECK(PciLink{32, 16, 16}.bytes_per_s() == Approx(63.015e9).epsilon(1e-4));
  CHECK(PciLink{64, 16, 16}.bytes_per_s() == Approx(121e9).epsilon(1e-2));
  CHECK(PciLink{32, 4, 16}.bytes_per_s() == Approx(15.754e9).epsilon(1e-4));
  CHECK(PciLink{}.bytes_per_s() == 0);
}

TEST_CASE("a link's speed is read as any kernel writes it") {
  CHECK(parse_link_speed("32.0 GT/s PCIe") == 32.0);
  CHECK(parse_link_speed("16 GT/s") == 16.0);
  for (const char* none : {"", "Unknown", "Unknown speed", "16", "16 GB/s", "-8 GT/s", "nan GT/s", "1e9 GT/s"}) {
    CAPTURE(none);
    CHECK_FALSE(parse_link_speed(none));
  }
}
