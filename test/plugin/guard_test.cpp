#include "plugin/guard.h"

#include "test/catch.h"
#include "test/plugin/rim.h"

using namespace gyre;
using namespace gyre::plugin;

TEST_CASE("codes are NCCL's, but for those that a plugin must not return") {
  const Rim rim;
  const std::vector<std::pair<Code, ncclResult_t>> all{
      {Code::cuda, ncclUnhandledCudaError},    {Code::system, ncclSystemError},
      {Code::internal, ncclInternalError},     {Code::invalid_argument, ncclInvalidArgument},
      {Code::invalid_usage, ncclInvalidUsage}, {Code::remote, ncclRemoteError},
      {Code::timeout, ncclRemoteError},        {static_cast<Code>(7), ncclInternalError}};
  for (const auto& [code, result] : all) CHECK(guard("slot", [c = code]() -> Status { return Error{c, "so it is"}; }) == result);
  CHECK(guard("slot", [] { return Status{}; }) == ncclSuccess);
  CHECK(logged().size() == all.size());
}

TEST_CASE("an error is logged once, as a warning, with slot, cause and where it was seen") {
  const Rim rim;
  guard("connect", []() -> Status { return Error{Code::remote, "100 % refused %s", "/somewhere/plugin/comm.cpp", 42}; });
  REQUIRE(logged().size() == 1);
  CHECK(logged()[0].level == NCCL_LOG_WARN);
  CHECK(logged()[0].flags == ~0UL);
  CHECK(logged()[0].file == "comm.cpp");
  CHECK(logged()[0].text == "NET/gyre: connect: 100 % refused %s");
}

TEST_CASE("no exception leaves a slot") {
  OpenRim<ncclNet_v12_t> rim;
  const auto [thrown, result, text] = GENERATE(std::tuple(Thrown::out_of_memory, ncclSystemError, "no memory is left"),
                                               std::tuple(Thrown::exception, ncclInternalError, "a bug"),
                                               std::tuple(Thrown::number, ncclInternalError, "an exception of an unknown kind"));
  rim.fake.thrown = thrown;
  int number = 0;
  void* out = nullptr;
  const auto& table = ncclNetPlugin_v12;
  CHECK(table.init(&out, 1, nullptr, keep_line, nullptr) == result);
  CHECK(table.devices(&number) == result);
  CHECK(logged().back().text == std::string("NET/gyre: devices: ") + text);
  ncclNetProperties_v12_t properties;
  CHECK(table.getProperties(0, &properties) == result);
  CHECK(table.listen(rim.context, 0, rim.handle, &out) == result);
  CHECK(table.connect(rim.context, 0, rim.handle, &out, nullptr) == result);
  CHECK(table.accept(rim.listener, &out, nullptr) == result);
  CHECK(table.regMr(rim.send_comm, rim.data, 1, NCCL_PTR_HOST, &out) == result);
  CHECK(table.regMrDmaBuf(rim.send_comm, rim.data, 1, NCCL_PTR_CUDA, 0, 0, &out) == result);
  CHECK(table.deregMr(rim.send_comm, rim.memory) == ncclSuccess);
  CHECK(table.isend(rim.send_comm, rim.data, 1, 0, rim.memory, nullptr, &out) == result);
  void* data = rim.data;
  size_t size = 1;
  int bytes = 1, tag = 0;
  CHECK(table.irecv(rim.receive_comm, 1, &data, &size, &tag, &rim.memory, nullptr, &out) == result);
  CHECK(table.iflush(rim.receive_comm, 1, &data, &bytes, &rim.memory, &out) == result);
  CHECK(table.test(rim.memory, &number, nullptr) == result);
  ncclNetVDeviceProps_v12_t fused{2, {0, 1}};
  CHECK(table.makeVDevice(&number, &fused) == result);
  CHECK(table.closeSend(rim.send_comm) == ncclSuccess);
  CHECK(table.closeRecv(rim.receive_comm) == ncclSuccess);
  CHECK(table.closeListen(rim.listener) == ncclSuccess);
  CHECK(table.finalize(rim.context) == result);
  CHECK(logged().size() == 18);
  rim.context = nullptr;
}
