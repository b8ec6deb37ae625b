#include <cstring>
#include <vector>

#include "test/catch.h"
#include "test/plugin/rim.h"

using namespace gyre;
using namespace gyre::plugin;

namespace {

template <class Properties>
Properties properties_type(ncclResult_t (*)(int, Properties*));
/// The struct that a table's getProperties fills.
template <class Table>
using PropertiesOf = decltype(properties_type(Table{}.getProperties));

Properties a_device() {
  Properties made;
  made.device.name = "mlx5_3:1";
  made.device.pci_path = "/sys/devices/pci0000:3a/0000:3a:00.0/0000:3b:00.0";
  made.device.guid = 0xfedcba9876543210;
  made.device.port = 2;
  made.device.mbit_per_s = 200000;
  made.device.latency_us = 1.5F;
  return made;
}

/// What getProperties writes over memory full of `filling`, so that a field that it leaves shows.
template <class Table>
PropertiesOf<Table> properties_over(int device, int filling) {
  PropertiesOf<Table> properties;
  std::memset(&properties, filling, sizeof properties);
  CHECK(Slots<Table>::table().getProperties(device, &properties) == ncclSuccess);
  return properties;
}

}  // namespace

TEMPLATE_LIST_TEST_CASE("getProperties fills every field of its version", "", Tables) {
  OpenRim<TestType> rim;
  rim.fake.properties = a_device();
  for (const int filling : {0xff, 0x5a}) {
    const auto p = properties_over<TestType>(1, filling);
    CHECK(rim.fake.last() == "properties 1");
    CHECK(std::string(p.name) == "mlx5_3:1");
    CHECK(std::string(p.pciPath) == "/sys/devices/pci0000:3a/0000:3a:00.0/0000:3b:00.0");
    CHECK(p.guid == 0xfedcba9876543210);
    CHECK(p.ptrSupport == NCCL_PTR_HOST);
    CHECK(p.speed == 200000);
    CHECK(p.port == 2);
    CHECK(p.latency == 1.5F);
    CHECK(p.maxComms == 65536);
    CHECK(p.maxRecvs == 8);
    if constexpr (requires { p.netDeviceType; }) {
      CHECK(p.netDeviceType == NCCL_NET_DEVICE_HOST);
      CHECK(p.netDeviceVersion == 0);
    }
    if constexpr (requires { p.regIsGlobal; }) CHECK(p.regIsGlobal == 0);
    if constexpr (requires { p.forceFlush; }) CHECK(p.forceFlush == 0);
    if constexpr (requires { p.vProps; }) {
      CHECK(p.vProps.ndevs == 1);
      CHECK(p.vProps.devs[0] == 1);
      for (size_t i = 1; i < std::size(p.vProps.devs); ++i) CHECK(p.vProps.devs[i] == 0);
      CHECK(p.maxP2pBytes == size_t{1} << 40);
      CHECK(p.maxCollBytes == size_t{1} << 40);
    }
    if constexpr (requires { p.maxMultiRequestSize; }) CHECK(p.maxMultiRequestSize == 1);
    if constexpr (requires { p.railId; }) {
      CHECK(p.railId == -1);
      CHECK(p.planeId == -1);
    }
  }
}

TEMPLATE_LIST_TEST_CASE("getProperties writes within its struct", "", Tables) {
  OpenRim<TestType> rim;
  rim.fake.properties = a_device();
  struct {
    PropertiesOf<TestType> properties;
    unsigned char after[64];
  } given;
  std::memset(&given, 0x77, sizeof given);
  CHECK(Slots<TestType>::table().getProperties(0, &given.properties) == ncclSuccess);
  for (const unsigned char byte : given.after) CHECK(byte == 0x77);
}

TEMPLATE_LIST_TEST_CASE("the kinds of memory are told by bits", "", Tables) {
  OpenRim<TestType> rim;
  rim.fake.properties.cuda = true;
  CHECK(properties_over<TestType>(0, 0xff).ptrSupport == (NCCL_PTR_HOST | NCCL_PTR_CUDA));
  rim.fake.properties.dmabuf = true;
  CHECK(properties_over<TestType>(0, 0xff).ptrSupport == (NCCL_PTR_HOST | NCCL_PTR_CUDA | NCCL_PTR_DMABUF));
}

TEMPLATE_LIST_TEST_CASE("a device's texts stay where they are, and one that is not on PCI has no path", "", Tables) {
  OpenRim<TestType> rim;
  const auto first = properties_over<TestType>(0, 0xff);
  CHECK(first.pciPath == nullptr);
  for (int i = 0; i < 100; ++i) {
    rim.fake.properties.device.name = "other" + std::to_string(i);
    properties_over<TestType>(1, 0xff);
  }
  CHECK(std::string(first.name) == "fake0");
  rim.fake.properties.device.name = "fake0";
  CHECK(properties_over<TestType>(0, 0xff).name == first.name);
}

TEMPLATE_LIST_TEST_CASE("getProperties refuses no struct, and passes errors on", "", Tables) {
  OpenRim<TestType> rim;
  const auto& table = Slots<TestType>::table();
  CHECK(table.getProperties(0, nullptr) == ncclInvalidArgument);
  CHECK(logged().back().text == "NET/gyre: getProperties: props is NULL");
  PropertiesOf<TestType> properties;
  rim.fake.error = Error{Code::invalid_argument, "no device 9"};
  CHECK(table.getProperties(9, &properties) == ncclInvalidArgument);
  CHECK(logged().back().text == "NET/gyre: getProperties: no device 9");
}

using TablesOfFused = std::tuple<ncclNet_v9_t, ncclNet_v10_t, ncclNet_v11_t, ncclNet_v12_t>;

TEMPLATE_LIST_TEST_CASE("a fused device lists its members", "", TablesOfFused) {
  OpenRim<TestType> rim;
  const std::vector<int> members{3, 0, 2, 1, 4, 5, 6, 7};
  rim.fake.properties.members = {members.data(), 4};
  const auto p = properties_over<TestType>(8, 0xff);
  CHECK(p.vProps.ndevs == 4);
  CHECK(std::vector<int>(p.vProps.devs, p.vProps.devs + 4) == std::vector<int>{3, 0, 2, 1});
  rim.fake.properties.members = members;
  PropertiesOf<TestType> all;
  if constexpr (std::size(PropertiesOf<TestType>{}.vProps.devs) == 8) {
    CHECK(properties_over<TestType>(8, 0xff).vProps.ndevs == 8);
  } else {
    CHECK(Slots<TestType>::table().getProperties(8, &all) == ncclInvalidUsage);
    CHECK(logged().back().text == "NET/gyre: getProperties: device 8 is fused of 8 devices, and this version of NCCL knows of 4 at most");
  }
}

TEMPLATE_LIST_TEST_CASE("makeVDevice fuses as many devices as its version has room for", "", TablesOfFused) {
  OpenRim<TestType> rim;
  const auto& table = Slots<TestType>::table();
  PropertiesOf<TestType> p{};
  auto& fused = p.vProps;
  constexpr int most = sizeof fused.devs / sizeof fused.devs[0];
  for (int i = 0; i < most; ++i) fused.devs[i] = most - i;
  int device = -5;
  fused.ndevs = most;
  CHECK(table.makeVDevice(&device, &fused) == ncclSuccess);
  CHECK(device == 2);
  CHECK(rim.fake.last() == (most == 8 ? "make_virtual_device 8 7 6 5 4 3 2 1" : "make_virtual_device 4 3 2 1"));
  rim.fake.calls.clear();
  device = -5;
  for (const int wrong : {0, -1, most + 1}) {
    fused.ndevs = wrong;
    CHECK(table.makeVDevice(&device, &fused) == ncclInvalidArgument);
    CHECK(logged().back().text ==
          "NET/gyre: makeVDevice: ndevs is " + std::to_string(wrong) + ", must be from 1 to " + std::to_string(most));
  }
  CHECK(table.makeVDevice(nullptr, &fused) == ncclInvalidArgument);
  CHECK(table.makeVDevice(&device, nullptr) == ncclInvalidArgument);
  CHECK(rim.fake.calls.empty());
  rim.fake.error = Error{Code::invalid_usage, "not of one speed"};
  fused.ndevs = 2;
  CHECK(table.makeVDevice(&device, &fused) == ncclInvalidUsage);
  CHECK(device == -5);
}
