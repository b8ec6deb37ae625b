// NCCL's interface by gyre alone where there is no memory left.
#include <atomic>
#include <cstdlib>
#include <functional>
#include <memory>
#include <new>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "plugin/nccl/comm.h"
#include "plugin/nccl/run.h"
#include "test/catch.h"
#include "test/plugin/nccl_ranks.h"

using namespace gyre;
using namespace gyre::plugin::nccl;

namespace {

// By this program's own operator new, below.
std::atomic<bool> none_left{false};
std::atomic<size_t> refused_bytes{0};  // of these there are none; 0: there are

}  // namespace

// Not inlined: next to the library's, g++ would take them for a mismatched pair.
[[gnu::noinline]] void* operator new(size_t bytes) {
  void* memory = none_left || (bytes != 0 && bytes == refused_bytes) ? nullptr : std::malloc(bytes);
  if (memory != nullptr) return memory;
  throw std::bad_alloc();
}
[[gnu::noinline]] void* operator new[](size_t bytes) { return operator new(bytes); }
[[gnu::noinline]] void* operator new(size_t bytes, const std::nothrow_t&) noexcept { return std::malloc(bytes); }
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, size_t) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, const std::nothrow_t&) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete[](void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete[](void* memory, size_t) noexcept { std::free(memory); }

// The first call of all.
TEST_CASE("nccl: a program that has no memory for it goes on by gyre alone, and is told") {
  int version = 0;
  none_left = true;
  const ncclResult_t result = ncclGetVersion(&version);
  const char* const said = ncclGetLastError(nullptr);
  none_left = false;
  CHECK(result == ncclSuccess);
  CHECK(version == 22809);
  CHECK(std::string(said).find("no memory is left") != std::string::npos);
}

TEST_CASE("nccl: a group that there is no memory for ends its communicator's call once") {
  struct CountingGpu final : OnGpu {
    Status enqueue(const engine::Call& /*call*/, const void* /*input*/, void* /*output*/, cudaStream_t /*stream*/) override { return {}; }
    Status why_not(const engine::Call& /*call*/) override { return {}; }
    Status status() override { return {}; }
    const Error* failure() const override { return ++asked, nullptr; }  // what ends a call asks for it
    Status finish(const std::function<void()>& /*meanwhile*/) override { return {}; }
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
  refused_bytes = bytes;
  const ncclResult_t result = run(group);
  refused_bytes = 0;
  CHECK(result == ncclSystemError);
  CHECK(counting.asked == 1);
  CHECK(comm->wait_until_idle({}));
}
