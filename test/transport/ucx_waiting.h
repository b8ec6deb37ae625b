// How tests of UCX wait for what comes, on machines of any speed.
#pragma once
#include <chrono>
#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>

#include "test/must.h"
#include "transport/transport.h"

namespace gyre::test {

/// How many times slower this machine is than a real one: its processors may be emulated.
inline const unsigned slow = std::getenv("TEST_SLOW") ? static_cast<unsigned>(std::stoul(std::getenv("TEST_SLOW"))) : 1;
/// Until what hangs is given up; under a sanitizer, thousands of messages take half a minute beside another build.
inline const auto patience = std::chrono::seconds(std::getenv("TEST_SANITIZED") ? 60 : 20) * slow;

/// Waits for `done()` while making progress; throws what a test should print when it takes too long or the worker fails.
template <class Done>
void await(transport::Worker& worker, const char* what, Done done) {
  const auto end = std::chrono::steady_clock::now() + patience;
  while (!done()) {
    if (worker.progress() == 0) std::this_thread::yield();
    if (const auto* failure = worker.failure()) throw std::runtime_error(std::string(what) + ": " + failure->what);
    if (std::chrono::steady_clock::now() > end) throw std::runtime_error(std::string(what) + ": too long");
  }
}

inline std::unique_ptr<transport::Endpoint> accept_one(transport::Worker& worker, transport::Listener& listener) {
  std::unique_ptr<transport::Endpoint> endpoint;
  await(worker, "accept", [&] { return (endpoint = must(listener.accept())) != nullptr; });
  return endpoint;
}

}  // namespace gyre::test
