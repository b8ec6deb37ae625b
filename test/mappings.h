// What of memory files this process has mapped.
#pragma once
#include <cstddef>
#include <fstream>
#include <sstream>
#include <string>

namespace gyre::test {

/// Mappings of memory files of so many bytes.
inline size_t mappings_of(size_t bytes) {
  std::ifstream maps("/proc/self/maps");
  size_t count = 0;
  for (std::string line; std::getline(maps, line);) {
    std::istringstream words(line);
    size_t begin = 0;
    size_t end = 0;
    char dash = 0;
    words >> std::hex >> begin >> dash >> end;
    if (line.find("memfd:gyre") != std::string::npos && end - begin == bytes) ++count;
  }
  return count;
}

}  // namespace gyre::test
