// NCCL's interface by gyre alone where there is no memory left.
#include <arpa/inet.h>
#include <sys/socket.h>

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "plugin/nccl/comm.h"
#include "plugin/nccl/run.h"
#include "test/catch.h"
#include "test/plugin/nccl_ranks.h"
#include "test/plugin/scarce_memory.h"
#include "transport/bootstrap_wire.h"
#include "transport/door.h"

using namespace gyre;
using namespace gyre::plugin::nccl;

// The first call of all.
TEST_CASE("nccl: a program that has no memory for it goes on by gyre alone, and is told") {
  int version = 0;
  test::none_left = true;
  const ncclResult_t result = ncclGetVersion(&version);
  const char* const said = ncclGetLastError(nullptr);
  test::none_left = false;
  CHECK(result == ncclSuccess);
  CHECK(version == 22809);
  CHECK(std::string(said).find("no memory is left") != std::string::npos);
}

TEST_CASE("nccl: a rank that has no memory for what others say is not ended by that, but fails, and they hear of it") {
  constexpr uint32_t bytes = 7'654'321;
  const transport::Door door = *transport::open_door();
  bool ended = false;
  std::thread other([&] {
    const std::vector<char> part(bytes);
    std::string begin;
    transport::bootstrap::Hello hello;
    hello.rank = 1, hello.size = 2, hello.job = 42;
    transport::bootstrap::put(begin, hello);
    transport::bootstrap::put(begin, bytes);
    transport::bootstrap::put(begin, transport::bootstrap::Kind::gather);
    const UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(door.port);
    if (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) return;
    for (const std::string_view text : {std::string_view(begin), std::string_view(part.data(), bytes)})
      std::ignore = ::send(fd.get(), text.data(), text.size(), MSG_NOSIGNAL);
    char heard = 0;
    while (::recv(fd.get(), &heard, 1, 0) > 0) {
    }
    ended = true;
  });
  transport::Rendezvous at = door.rendezvous(0, 2);
  at.job = 42;
  test::refused_bytes = bytes + 1;  // the text, and its end
  const auto job = transport::Bootstrap::join(at);
  const Error* const why = job ? (*job)->wait_for_failure(std::chrono::seconds(20)) : nullptr;
  test::refused_bytes = 0;
  CHECK((why != nullptr && why->what == "no memory left"));
  other.join();
  CHECK(ended);
}

TEST_CASE("nccl: a group that there is no memory for ends its communicator's call once") {
  struct CountingGpu final : OnGpu {
    Status enqueue(const engine::Call& /*call*/, const void* /*input*/, void* /*output*/, cudaStream_t /*stream*/) override { return {}; }
    Status why_not(const engine::Call& /*call*/) override { return {}; }
    Status status() override { return {}; }
    const Error* failure() const override { return ++asked, nullptr; }  // what ends a call asks for it
    Status finish(const std::function<Status()>& /*meanwhile*/) override { return {}; }
    bool idle() override { return true; }
    bool in_graphs() override { return false; }
    void abort(std::string_view /*why*/) override {}
    mutable int asked = 0;
  };
  constexpr size_t bytes = 7'654'321;
  const auto comm = std::make_shared<Comm>(0, 1, 0, Settings{});
  auto gpu = std::make_unique<CountingGpu>();
  const CountingGpu& counting = *gpu;
  auto alone = engine::Communicator::create(transport::Rendezvous{}, test::configured({}));
  REQUIRE(alone);
  REQUIRE(comm->made(*std::move(alone), std::move(gpu)));
  std::vector<char> data(bytes);
  std::vector<Operation> group;
  for (const auto kind : {engine::Transfer::Kind::send, engine::Transfer::Kind::receive}) {
    group.push_back({comm, "ncclSend", {}, {kind, 0, data.data(), bytes, DataType::int8}});
    group.back().on_gpu = true;  // so that memory of the host is to stand for it
  }
  REQUIRE(comm->begin_call(false));
  test::refused_bytes = bytes;
  const ncclResult_t result = run(group);
  test::refused_bytes = 0;
  CHECK(result == ncclSystemError);
  CHECK(counting.asked == 1);
  CHECK(comm->wait_until_idle({}));
}
