// The transports that tests of the engine run over: those that were built in and are there, or the one that TEST_BACKEND names. UCX only by
// its name: the tests "engine over ucx" run it over each of its own transports.
#pragma once
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <vector>

#include "transport/transport.h"

namespace gyre::test {

inline std::vector<std::string> backends() {
  std::vector<std::string> names;
  const char* only = std::getenv("TEST_BACKEND");
  for (const transport::Device& device : transport::devices()) {
    if (only == nullptr ? device.backend != "ucx" : device.backend == only) names.push_back(device.backend);
  }
  if (only != nullptr && names.empty()) throw std::runtime_error(std::string("there is no transport ") + only);
  return names;
}

}  // namespace gyre::test
