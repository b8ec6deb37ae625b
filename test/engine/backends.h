// The transports that tests of the engine run over: those that were built in and are there.
#pragma once
#include <string>
#include <vector>

#include "transport/transport.h"

namespace gyre::test {

inline std::vector<std::string> backends() {
  std::vector<std::string> names;
  for (const transport::Device& device : transport::devices()) names.push_back(device.backend);
  return names;
}

}  // namespace gyre::test
