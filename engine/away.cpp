#include "engine/away.h"

#include <algorithm>
#include <fstream>
#include <string>

#include "base/text.h"

namespace gyre::engine {
namespace {

constexpr size_t least_message = 8192;
constexpr size_t least_call = 64 << 10;

std::string line_of(const std::filesystem::path& file) {
  std::string line;
  std::getline(std::ifstream(file), line);
  return line;
}

// Of "0-3,8" 5; of anything else, 0.
int processors_in(std::string_view list) {
  uint64_t count = 0;
  while (!list.empty()) {
    const std::string_view range = list.substr(0, list.find(','));
    list.remove_prefix(std::min(list.size(), range.size() + 1));
    const auto first = parse_number(range.substr(0, range.find('-')));
    const auto last = range.find('-') == std::string_view::npos ? first : parse_number(range.substr(range.find('-') + 1));
    if (!first || !last || *last < *first || *last - *first > 1'000'000) return 0;
    count += *last - *first + 1;
  }
  return static_cast<int>(std::min<uint64_t>(count, 1'000'000));
}

}  // namespace

SharedCache shared_cache(const std::filesystem::path& folder) {
  SharedCache largest;
  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator(folder, none)) {
    const size_t bytes = parse_bytes(line_of(entry.path() / "size")).value_or(0);
    const int processors = processors_in(line_of(entry.path() / "shared_cpu_list"));
    if (bytes > largest.bytes && processors > 0) largest = {bytes, processors};
  }
  return largest;
}

Away Away::of(const HostLoad& load, const SharedCache& cache, bool one_cache) {
  Away away{.calls = least_call};
  const bool may_be_here = load.crowded && (cache.processors == 0 || cache.processors >= load.processors);
  if (!one_cache && !may_be_here) away.messages = least_message;
  const auto all = static_cast<size_t>(std::max(load.processors, 1));
  const size_t together = static_cast<size_t>(load.ranks) * std::min(static_cast<size_t>(cache.processors), all) / all;
  if (cache.bytes > 0) away.results = cache.bytes / 2 / std::max<size_t>(together, 1);
  return away;
}

}  // namespace gyre::engine
