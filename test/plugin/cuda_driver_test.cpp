// What gyre asks CUDA's driver for, a fake one: in whose context, and what becomes of an error.
#include "plugin/nccl/cuda_driver.h"

#include <dlfcn.h>

#include <cstdlib>
#include <stdexcept>
#include <string>
#include <utility>

#include "test/catch.h"
#include "test/plugin/fake_cuda.h"

using namespace gyre;
namespace cuda = plugin::nccl::cuda;

namespace {

template <class Function>
Function* fake(const char* name) {
  static void* const library = ::dlopen(std::getenv("TEST_FAKE_CUDA"), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) throw std::runtime_error("TEST_FAKE_CUDA names no library");
  return reinterpret_cast<Function*>(::dlsym(library, name));
}

/// For a test, in a thread that is in that device's context; -1: in none.
FakeCuda& driver_from(int device) {
  FakeCuda& state = *fake<FakeCudaState>("fake_cuda")();
  state = {"", 0, 0, 0, 0, -1, 0};
  fake<FakeCudaEnter>("fake_cuda_enter")(device);
  cuda::look();
  return state;
}

cuda::Context of_second() {
  const auto context = cuda::context_of(1);
  REQUIRE(context);
  REQUIRE(*context != nullptr);
  return *context;
}

cudaStream_t numbered(unsigned stream) { return reinterpret_cast<cudaStream_t>(uintptr_t{stream}); }

}  // namespace

TEST_CASE("cuda driver: it knows which devices there are") {
  driver_from(0);
  for (const int device : {0, 1}) CHECK(cuda::is_device(device));
  for (const int device : {-1, 2}) CHECK(cuda::is_device(device).error().what == "CUDA has no device " + std::to_string(device));
}

TEST_CASE("cuda driver: streams that each context has are the communicator's, wherever the thread is") {
  for (const int device : {-1, 0, 1}) {
    for (const unsigned stream : {0U, 1U, 2U}) {
      const FakeCuda& state = driver_from(device);
      cuda::Mark mark(of_second());
      CHECK(mark.set(numbered(stream)));
      CHECK(mark.before(numbered(stream)));
      const auto passed = mark.passed();
      CHECK((passed && *passed));
      const auto captured = cuda::captures(numbered(stream), of_second());
      CHECK((captured && !*captured));
      CHECK(std::string(state.said) == "r1w1");
      CHECK(state.current == device);
      CHECK((state.pushes == 0) == (device == 1));  // which costs a call that NCCL runs more than to ask
    }
  }
}

TEST_CASE("cuda driver: a stream of another device is marked there") {
  const FakeCuda& state = driver_from(-1);
  cuda::Mark mark(of_second());
  const cudaStream_t first = fake<FakeCudaStream>("fake_cuda_stream")(0);
  CHECK(mark.set(first));
  CHECK(mark.before(nullptr));
  CHECK(std::string(state.said) == "r0w1");
}

TEST_CASE("cuda driver: only the legacy stream is never captured, and an error is none") {
  FakeCuda& state = driver_from(-1);
  state.captures = 1;
  for (const unsigned stream : {0U, 1U, 2U}) {
    const auto captured = cuda::captures(numbered(stream), of_second());
    CHECK((captured && *captured == (stream == 2)));
  }
  state.fails_capturing = 900;
  for (const unsigned stream : {0U, 1U, 2U}) CHECK(static_cast<bool>(cuda::captures(numbered(stream), of_second())) == (stream != 2));
  cuda::Mark mark(of_second());
  CHECK_FALSE(mark.set(numbered(2)));
}

TEST_CASE("cuda driver: what can't be marked is waited for, or an error") {
  FakeCuda& state = driver_from(0);
  state.fails_recording = 2;
  cuda::Mark mark(of_second());
  CHECK(mark.set(nullptr));
  CHECK(std::string(state.said) == "s1");
  state.fails_synchronizing = 700;
  CHECK_FALSE(mark.set(nullptr));
}

TEST_CASE("cuda driver: a copy leaves the thread in its context") {
  for (const bool given : {true, false}) {
    const FakeCuda& state = driver_from(0);
    int from = 7, to = 0;
    CHECK(cuda::copy(&to, &from, sizeof to, nullptr, given ? of_second() : nullptr));
    CHECK(to == 7);
    CHECK(std::string(state.said) == (given ? "c1s1" : "c0s0"));
    CHECK(state.current == 0);
  }
}

TEST_CASE("cuda driver: no bytes are no memory, and no error, as of cudaMalloc") {
  driver_from(0);
  const auto nothing = cuda::allocate(0);
  CHECK((nothing && *nothing == nullptr));
  CHECK_FALSE(cuda::allocate(1));  // the fake one has none
}
