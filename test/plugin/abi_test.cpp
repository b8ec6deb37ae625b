#include <cstring>

#include "plugin/abi/net_properties_layout.h"
#include "plugin/abi/net_table_layout.h"
#include "plugin/abi/tuner_layout.h"
#include "test/catch.h"
#include "test/plugin/rim.h"

using namespace gyre;
using namespace gyre::plugin;
using Calls = std::vector<std::string>;

TEMPLATE_LIST_TEST_CASE("a table is named gyre and lacks only what is for code on the GPU", "", Tables) {
  const TestType& table = Slots<TestType>::table();
  CHECK(std::string(table.name) == "gyre");
  constexpr size_t slots = sizeof(TestType) / sizeof(void*);
  void* pointers[slots];
  std::memcpy(pointers, &table, sizeof table);
  for (size_t i = 0; i < slots; ++i) {
    bool may_lack = false;
    if constexpr (Slots<TestType>::has_device_comms)
      may_lack = i == offsetof(TestType, getDeviceMr) / sizeof(void*) || i == offsetof(TestType, irecvConsumed) / sizeof(void*);
    INFO("slot " << i);
    CHECK((pointers[i] == nullptr) == may_lack);
  }
}

TEMPLATE_TEST_CASE("init opens a context, which finalize closes", "", ncclNet_v11_t, ncclNet_v12_t) {
  Rim rim;
  const auto& table = Slots<TestType>::table();
  void* context = rim.stale;
  CHECK(Slots<TestType>::init(&context, keep_line, 77, 105) == ncclSuccess);
  CHECK(rim.fake.last() == "open 77 class 105");
  CHECK(context != nullptr);
  void* second = nullptr;
  CHECK(table.init(&second, 78, nullptr, keep_line, nullptr) == ncclSuccess);
  CHECK(rim.fake.last() == "open 78 class -1");
  CHECK(second != context);
  CHECK(table.finalize(second) == ncclSuccess);
  CHECK(rim.fake.last().starts_with("finalize "));
  CHECK(table.finalize(context) == ncclSuccess);
  rim.fake.calls.clear();
  CHECK(table.finalize(nullptr) == ncclSuccess);
  CHECK(table.init(nullptr, 79, nullptr, keep_line, nullptr) == ncclInvalidArgument);
  CHECK(rim.fake.calls.empty());
  CHECK(logged().back().text == "NET/gyre: init: ctx is NULL");
  rim.fake.error = Error{Code::system, "no network"};
  context = rim.stale;
  CHECK(Slots<TestType>::init(&context, keep_line) == ncclSystemError);
  CHECK(context == nullptr);
}

TEST_CASE("init of the older tables, however often, makes one context of the process") {
  Rim rim;
  rim.fake.error = Error{Code::system, "no network"};
  const bool was_open = process_contexts(-1) > 0;
  if (!was_open) CHECK(ncclNetPlugin_v5.init(keep_line) == ncclSystemError);
  rim.fake.error.reset();
  CHECK(ncclNetPlugin_v5.init(keep_line) == ncclSuccess);
  CHECK(ncclNetPlugin_v5.init(nullptr) == ncclSuccess);
  CHECK(ncclNetPlugin_v9.init(keep_line) == ncclSuccess);
  CHECK(ncclNetPlugin_v10.init(keep_line, nullptr) == ncclSuccess);
  CHECK(process_contexts(-1) == 1);
  for (int i = 0; i < 4; ++i) end_log();
}

TEST_CASE("version 10 connects with a context for each traffic class") {
  Rim rim;
  ncclNetPlugin_v10.init(keep_line, nullptr);
  ncclNetCommConfig_v10_t config{96};
  void* comm = rim.stale;
  rim.fake.error = Error{Code::system, "no queue"};
  CHECK(ncclNetPlugin_v10.connect(0, &config, rim.handle, &comm, nullptr) == ncclSystemError);
  CHECK(comm == nullptr);
  CHECK(logged().back().text == "NET/gyre: connect: no queue");
  rim.fake.error.reset();
  const int before = process_contexts(96);
  rim.fake.calls.clear();
  CHECK(ncclNetPlugin_v10.connect(0, &config, rim.handle, &comm, nullptr) == ncclSuccess);
  CHECK(comm != nullptr);
  const std::string of_96 = rim.fake.last();
  CHECK(ncclNetPlugin_v10.connect(0, &config, rim.handle, &comm, nullptr) == ncclSuccess);
  CHECK(rim.fake.last() == of_96);
  CHECK(process_contexts(96) == before + 1);
  config.trafficClass = -1;
  CHECK(ncclNetPlugin_v10.connect(0, &config, rim.handle, &comm, nullptr) == ncclSuccess);
  CHECK(rim.fake.last() != of_96);
  CHECK(process_contexts(-1) == 1);
  end_log();
}

TEMPLATE_LIST_TEST_CASE("devices are counted", "", Tables) {
  OpenRim<TestType> rim;
  const auto& table = Slots<TestType>::table();
  rim.fake.device_count = 5;
  int count = -1;
  CHECK(table.devices(&count) == ncclSuccess);
  CHECK(count == 5);
  CHECK(table.devices(nullptr) == ncclInvalidArgument);
  CHECK(logged().back().text == "NET/gyre: devices: ndev is NULL");
}

TEMPLATE_LIST_TEST_CASE("listen fills the whole handle, which connect gets", "", Tables) {
  OpenRim<TestType> rim;
  using S = Slots<TestType>;
  unsigned char handle[handle_bytes + 8];
  std::memset(handle, 0xee, sizeof handle);
  void* comm = rim.stale;
  CHECK(S::listen(rim.context, 1, handle, &comm) == ncclSuccess);
  CHECK(rim.fake.last().ends_with("device 1"));
  CHECK(comm != rim.stale);
  CHECK(handle[1] == 0);
  CHECK(handle[handle_bytes] == 0xee);
  const std::string context = rim.fake.last().substr(7);  // "listen context 3 device 1"
  CHECK(context.find("context 0") == std::string::npos);

  ncclNetDeviceHandle_v7_t* device_comm = nullptr;
  comm = rim.stale;
  rim.fake.not_yet = true;
  CHECK(S::connect(rim.context, 1, handle, &comm, &device_comm) == ncclSuccess);
  CHECK(comm == nullptr);
  CHECK(rim.fake.last() == "connect " + context + " handle 1..90");
  rim.fake.not_yet = false;
  CHECK(S::connect(rim.context, 1, handle, &comm, &device_comm) == ncclSuccess);
  CHECK(comm != nullptr);
  CHECK(device_comm == nullptr);
}

TEMPLATE_LIST_TEST_CASE("accept is called until there is a comm", "", Tables) {
  OpenRim<TestType> rim;
  using S = Slots<TestType>;
  void* comm = rim.stale;
  ncclNetDeviceHandle_v7_t* device_comm = nullptr;
  rim.fake.not_yet = true;
  CHECK(S::accept(rim.listener, &comm, &device_comm) == ncclSuccess);
  CHECK(comm == nullptr);
  rim.fake.not_yet = false;
  CHECK(S::accept(rim.listener, &comm, &device_comm) == ncclSuccess);
  CHECK(comm != nullptr);
  CHECK(device_comm == nullptr);
  CHECK(rim.fake.calls == Calls{"accept 1", "accept 1"});
}

TEMPLATE_LIST_TEST_CASE("listen, connect and accept leave no comm when they fail", "", Tables) {
  OpenRim<TestType> rim;
  using S = Slots<TestType>;
  void* comm = rim.stale;
  CHECK(S::listen(rim.context, 0, nullptr, &comm) == ncclInvalidArgument);
  CHECK(comm == nullptr);
  CHECK(S::listen(rim.context, 0, rim.handle, nullptr) == ncclInvalidArgument);
  comm = rim.stale;
  CHECK(S::connect(rim.context, 0, nullptr, &comm) == ncclInvalidArgument);
  CHECK(comm == nullptr);
  CHECK(S::connect(rim.context, 0, rim.handle, nullptr) == ncclInvalidArgument);
  comm = rim.stale;
  CHECK(S::accept(nullptr, &comm) == ncclInvalidArgument);
  CHECK(comm == nullptr);
  CHECK(S::accept(rim.listener, nullptr) == ncclInvalidArgument);
  CHECK(rim.fake.calls.empty());
  CHECK(logged().size() == 6);
  CHECK(logged()[0].text == "NET/gyre: listen: handle is NULL");
  CHECK(logged()[4].text == "NET/gyre: accept: listenComm is NULL");

  rim.fake.error = Error{Code::remote, "refused by 10.0.0.1"};
  comm = rim.stale;
  CHECK(S::connect(rim.context, 0, rim.handle, &comm) == ncclRemoteError);
  CHECK(comm == nullptr);
  comm = rim.stale;
  CHECK(S::listen(rim.context, 0, rim.handle, &comm) == ncclRemoteError);
  CHECK(comm == nullptr);
  comm = rim.stale;
  CHECK(S::accept(rim.listener, &comm) == ncclRemoteError);
  CHECK(comm == nullptr);
  CHECK(logged().back().text == "NET/gyre: accept: refused by 10.0.0.1");
}

TEMPLATE_LIST_TEST_CASE("closing succeeds whatever happens", "", Tables) {
  OpenRim<TestType> rim;
  const auto& table = Slots<TestType>::table();
  CHECK(table.closeSend(rim.send_comm) == ncclSuccess);
  CHECK(table.closeRecv(rim.receive_comm) == ncclSuccess);
  CHECK(table.closeListen(rim.listener) == ncclSuccess);
  CHECK(table.closeSend(nullptr) == ncclSuccess);
  CHECK(table.closeRecv(nullptr) == ncclSuccess);
  CHECK(table.closeListen(nullptr) == ncclSuccess);
  CHECK(rim.fake.calls == Calls{"close 1", "close 2", "close listener 1", "close 0", "close 0", "close listener 0"});
  rim.fake.thrown = Thrown::exception;
  CHECK(table.closeSend(rim.send_comm) == ncclSuccess);
  CHECK(table.closeListen(rim.listener) == ncclSuccess);
  CHECK(logged().size() == 2);
}

TEMPLATE_TEST_CASE("setNetAttr takes everything", "", ncclNet_v11_t, ncclNet_v12_t) {
  OpenRim<TestType> rim;
  ncclNetAttr_v12_t attributes{};
  attributes.op = attributes.algo = attributes.proto = ~0U;
  attributes.sendCommAttr.maxConcurrentPeers = -1;
  CHECK(Slots<TestType>::table().setNetAttr(rim.context, &attributes) == ncclSuccess);
  CHECK(Slots<TestType>::table().setNetAttr(rim.context, nullptr) == ncclSuccess);
  CHECK(Slots<TestType>::table().setNetAttr(nullptr, nullptr) == ncclSuccess);
}
