#include "base/sysfs.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <fstream>
#include <system_error>
#include <utility>

namespace gyre::sysfs {
namespace fs = std::filesystem;

std::string first_line(const fs::path& file) {
  std::error_code error;
  if (!fs::is_regular_file(file, error)) return "";
  std::array<char, 4097> line{};  // the kernel's own limit is a page
  std::ifstream(file).getline(line.data(), line.size());
  return line.data();
}

std::optional<uint64_t> number(const fs::path& file) {
  const std::string line = first_line(file);
  const bool hex = line.starts_with("0x");
  uint64_t value = 0;
  const char* const last = line.data() + line.size();
  const auto [end, error] = std::from_chars(line.data() + (hex ? 2 : 0), last, value, hex ? 16 : 10);
  if (error != std::errc() || end != last) return std::nullopt;
  return value;
}

std::vector<fs::path> entries(const fs::path& folder) {
  std::vector<fs::path> found;
  std::error_code error;
  for (fs::directory_iterator i(folder, error), end; !error && i != end; i.increment(error)) found.push_back(i->path());
  std::ranges::sort(found, {}, [](const fs::path& p) { return std::pair(p.filename().native().size(), p.filename().native()); });
  return found;
}

}  // namespace gyre::sysfs
