#include "base/processor.h"

#include <unistd.h>

#include <fstream>

namespace gyre {

Processors processors_of_host() {
  Processors found{"unknown", ::sysconf(_SC_NPROCESSORS_ONLN)};
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);) {
    if (!line.starts_with("model name")) continue;
    found.model = line.substr(line.find(':') + 2);
    break;
  }
  return found;
}

}  // namespace gyre
