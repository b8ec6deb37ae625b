#include "perf/tuner_plugin.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <vector>

#include "perf/net_plugin.h"

namespace gyre::perf {
namespace {

constexpr uint64_t communicator = 1;

template <class Table>
TunerPlugin taken(const Table& table) {
  TunerPlugin plugin;
  plugin.name = table.name != nullptr ? table.name : "without a name";
  plugin.init = [&table](size_t ranks, size_t nodes, void** context) {
    if constexpr (requires { table.finalize; }) {
      // A domain for each node, and constants that say nothing.
      const int ranks_of_node = static_cast<int>(ranks / nodes);
      ncclNvlDomainInfo_v5_t domains{static_cast<int>(nodes), ranks_of_node, ranks_of_node + (ranks % nodes != 0 ? 1 : 0)};
      ncclTunerConstants_v5_t constants{};
      return table.init(context, communicator, ranks, nodes, warnings_to_stderr(), &domains, &constants);
    } else {
      return table.init(ranks, nodes, warnings_to_stderr(), context);
    }
  };
  plugin.choose = [&table](void* context, ncclFunc_t collective, size_t bytes, TunerCosts& costs, int* channels) {
    auto** const declared = reinterpret_cast<float**>(costs.data());  // as NCCL declares what is an array of arrays
    if constexpr (requires { table.getCollInfo(context, collective, bytes, 1, declared, 0, 0, 0, channels); })
      return table.getCollInfo(context, collective, bytes, 1, declared, NCCL_NUM_ALGORITHMS, NCCL_NUM_PROTOCOLS, 0, channels);
    else
      return table.getCollInfo(context, collective, bytes, 1, declared, NCCL_NUM_ALGORITHMS, NCCL_NUM_PROTOCOLS, channels);
  };
  plugin.finalize = [&table](void* context) {
    if constexpr (requires { table.finalize; })
      return table.finalize(context);
    else
      return table.destroy(context);
  };
  return plugin;
}

TunerPlugin taken(int version, const void* table) {
  switch (version) {
    case 3:
      return taken(*static_cast<const ncclTuner_v3_t*>(table));
    case 4:
      return taken(*static_cast<const ncclTuner_v4_t*>(table));
    case 5:
      return taken(*static_cast<const ncclTuner_v5_t*>(table));
    default:
      return taken(*static_cast<const ncclTuner_v6_t*>(table));
  }
}

}  // namespace

Error TunerPlugin::error(const char* call, ncclResult_t code) const {
  return {Code::internal, fmt::format("tuner plugin {}, table {}: {}: {}", name, version, call, result_name(code))};
}

Result<TunerPlugin> TunerPlugin::open(const std::string& path, std::optional<int> version) {
  const auto invalid = [&](const std::string& what) {
    return Error{Code::invalid_argument, fmt::format("tuner plugin {}: {}", path, what)};
  };
  if (path.empty()) return invalid("no path");  // which would be this program
  void* opened = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (opened == nullptr) return invalid(fmt::format("cannot be opened: {}", dlerror()));
  const std::shared_ptr<void> library(opened, [](void* handle) { dlclose(handle); });
  std::vector<int> there;
  for (int v = newest_tuner_table; v >= oldest_tuner_table; --v) {
    const void* table = dlsym(opened, fmt::format("ncclTunerPlugin_v{}", v).c_str());
    if (table == nullptr) continue;
    if (version.value_or(v) != v) {
      there.push_back(v);
      continue;
    }
    TunerPlugin plugin = taken(v, table);
    plugin.library = library;
    plugin.version = v;
    return plugin;
  }
  if (there.empty()) return invalid("has no table ncclTunerPlugin_v3 to _v6");
  return invalid(fmt::format("has no table {}, but {}", *version, fmt::join(there, ", ")));
}

}  // namespace gyre::perf
