// In a program that is linked with another UCX (another_ucx.cpp, whose functions end the process) gyre uses the real one.
#include <dlfcn.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>

#include "test/catch.h"
#include "transport/ucx.h"

using namespace gyre;
using namespace gyre::transport;

extern "C" int another_ucx_is_here();

namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool sanitized = true;
#elif defined(__has_feature)
constexpr bool sanitized = __has_feature(address_sanitizer) || __has_feature(thread_sanitizer);
#else
constexpr bool sanitized = false;
#endif

template <class Done>
void await(Worker& worker, Done done) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (!done()) {
    if (worker.progress() == 0) std::this_thread::yield();
    if (worker.failure() != nullptr) FAIL(worker.failure()->what);
    if (std::chrono::steady_clock::now() > end) FAIL("too long");
  }
}

/// From one endpoint of a worker to another, small and large.
void pass_messages(Worker& worker) {
  auto listener = *worker.listen();
  auto left = *worker.connect(listener->address(), "");
  std::unique_ptr<Endpoint> right;
  await(worker, [&] { return (right = *listener->accept()) != nullptr; });
  await(worker, [&] { return *left->ready() && *right->ready(); });
  for (const size_t bytes : {size_t{1}, size_t{4} << 20}) {
    std::vector<std::byte> out(bytes, std::byte{7}), in(bytes);
    auto* receive = right->receive(bytes, in, nullptr);
    auto* send = left->send(bytes, out, nullptr);
    await(worker, [&] { return send->done && receive->done; });
    CHECK(send->failure == nullptr);
    CHECK(receive->failure == nullptr);
    CHECK(in == out);
  }
}

}  // namespace

TEST_CASE("beside another UCX, messages arrive") {
  REQUIRE(another_ucx_is_here() == 1);
  REQUIRE(environ[0] != nullptr);  // a program that names it has a variable of its own, to the exclusion of that in libc
  Dl_info another{};
  REQUIRE(dladdr(dlsym(RTLD_DEFAULT, "ucp_init_version"), &another) != 0);
  REQUIRE(std::strstr(another.dli_fname, "another-ucx") != nullptr);

  auto opened = open_ucx_worker({});
  if (sanitized) {
    REQUIRE_FALSE(opened);
    CHECK(opened.error().what.find("another-ucx") != std::string::npos);
    CHECK(opened.error().what.find("malloc is not libc's") != std::string::npos);
    return;
  }
  for (int i = 0; i < 5; ++i) {
    if (!opened) FAIL(opened.error().what);
    pass_messages(**opened);
    opened->reset();
    // Moves the environment elsewhere.
    for (int j = 0; j < 20; ++j) REQUIRE(setenv(("A_VARIABLE_" + std::to_string(20 * i + j)).c_str(), "x", 1) == 0);
    opened = open_ucx_worker({});
  }
}
