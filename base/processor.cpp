#include "base/processor.h"

#include <unistd.h>

#include <fstream>

namespace gyre {

Processors processors_of_host() {
  Processors found{"unknown", ::sysconf(_SC_NPROCESSORS_ONLN)};
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);) {
    const size_t colon = line.find(": ");
    if (colon == std::string::npos) continue;
    const std::string value = line.substr(colon + 2);
    if (line.starts_with("model name")) return {value, found.count};
    // arm64 has no name: who made it, and which of theirs it is.
    if (line.starts_with("CPU implementer")) found.model = value;
    if (line.starts_with("CPU part")) return {found.model + ' ' + value, found.count};
  }
  return found;
}

}  // namespace gyre
