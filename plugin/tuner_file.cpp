#include "plugin/tuner_file.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <map>
#include <mutex>

#include "base/file.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/processor.h"
#include "base/text.h"
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

/// "2.28.9"; empty: it is not to be found, as where a program has loaded it for one of its libraries alone.
std::string nccl_of_process() {
  void* const found = ::dlsym(RTLD_DEFAULT, "ncclGetVersion");
  int code = 0;
  if (found == nullptr || reinterpret_cast<ncclResult_t (*)(int*)>(found)(&code) != ncclSuccess) return {};
  const int major = code < 10000 ? 1000 : 10000;  // until 2.8
  return fmt::format("{}.{}.{}", code / major, code % major / 100, code % 100);
}

void warn_of_other_nccl(const std::string& said, std::set<std::string> versions) {
  versions.erase("unknown");
  if (versions.empty()) return;
  const std::string here = nccl_of_process();
  if (here.empty()) return;
  std::erase_if(versions, [&](const std::string& measured) { return measured.substr(0, measured.find('+')) == here; });
  if (versions.empty()) return;
  log::warn("{}: has choices that were measured with NCCL {}, and this is NCCL {}; they are taken, since all ranks must choose alike", said,
            fmt::join(versions, ", "), here);
}

TunerFile read(const std::string& path) {
  const std::string said = "GYRE_TUNER_FILE=" + path;  // by errors
  const auto text = read_file(path, most_bytes);
  if (!text) return {Error{Code::invalid_argument, fmt::format("{}: {}", said, text.error().what)}, unreadable, {}};
  if (!is_tuner_profile(*text)) return {parse_tuner_rules(*text, said), fnv1a(*text), {}};
  TunerFile file{parse_tuner_profile(*text, said), fnv1a(*text), {}};
  if (!file.rules) return file;
  const ProfileOrigin origin = origin_of_choices(*text);
  warn_of_foreign(said, origin.machines);
  warn_of_other_nccl(said, origin.nccl_versions);
  file.predicted_for = printable(origin.predicted_for, 40);
  return file;
}

}  // namespace

const TunerFile& tuner_file(const std::string& path) {
  static std::mutex mutex;
  // Never destroyed: NCCL's threads may look at them when the process ends.
  static auto& files = *new std::map<std::string, TunerFile>{{"", {std::vector<TunerRule>{}, 0, {}}}};
  const std::lock_guard lock(mutex);
  auto found = files.find(path);
  if (found == files.end()) found = files.emplace(path, read(path)).first;
  return found->second;
}

}  // namespace gyre::plugin
