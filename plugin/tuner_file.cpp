#include "plugin/tuner_file.h"

#include <fmt/format.h>

#include <map>
#include <mutex>

#include "base/file.h"
#include "base/hash.h"
#include "plugin/tuner_profile.h"

namespace gyre::plugin {
namespace {

constexpr size_t most_bytes = 1 << 20;  // of a file: some 30000 rules
constexpr uint64_t unreadable = 1;

TunerFile read(const std::string& path) {
  const std::string said = "GYRE_TUNER_FILE=" + path;  // by errors
  const auto text = read_file(path, most_bytes);
  if (!text) return {Error{Code::invalid_argument, fmt::format("{}: {}", said, text.error().what)}, unreadable};
  return {is_tuner_profile(*text) ? parse_tuner_profile(*text, said) : parse_tuner_rules(*text, said), fnv1a(*text)};
}

}  // namespace

const TunerFile& tuner_file(const std::string& path) {
  static std::mutex mutex;
  // Never destroyed: NCCL's threads may look at them when the process ends.
  static auto& files = *new std::map<std::string, TunerFile>{{"", {std::vector<TunerRule>{}}}};
  const std::lock_guard lock(mutex);
  auto found = files.find(path);
  if (found == files.end()) found = files.emplace(path, read(path)).first;
  return found->second;
}

}  // namespace gyre::plugin
