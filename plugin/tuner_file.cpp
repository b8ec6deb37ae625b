#include "plugin/tuner_file.h"

#include <fmt/format.h>

#include <map>
#include <mutex>

#include "base/file.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/processor.h"
#include "plugin/tuner_profile.h"

namespace gyre::plugin {
namespace {

constexpr size_t most_bytes = 1 << 20;  // of a file: some 30000 rules
constexpr uint64_t unreadable = 1;

void warn_of_foreign(const std::string& said, std::set<std::string> machines) {
  const std::vector<std::string> here = models_of_host();
  for (const std::string& model : here) std::erase_if(machines, [&](const std::string& name) { return is_of_model(name, model); });
  if (machines.empty()) return;
  log::warn("{}: has choices that were measured on {}, and this machine has {}; they are taken, since all ranks must choose alike", said,
            fmt::join(machines, ", "), here.front());
}

TunerFile read(const std::string& path) {
  const std::string said = "GYRE_TUNER_FILE=" + path;  // by errors
  const auto text = read_file(path, most_bytes);
  if (!text) return {Error{Code::invalid_argument, fmt::format("{}: {}", said, text.error().what)}, unreadable};
  if (!is_tuner_profile(*text)) return {parse_tuner_rules(*text, said), fnv1a(*text)};
  TunerFile file{parse_tuner_profile(*text, said), fnv1a(*text)};
  if (file.rules) warn_of_foreign(said, measured_on(*text));
  return file;
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
