// Opens a NCCL tuner plugin, anybody's, and asks it through the newest table that it has, or a named one: versions 3 to 6, which price
// algorithms and protocols in a table. It must not know gyre's own.
#pragma once
#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/result.h"
#include "plugin/abi/tuner.h"

namespace gyre::perf {

inline constexpr int oldest_tuner_table = 3;
inline constexpr int newest_tuner_table = 6;

/// Microseconds by algorithm and protocol, as NCCL lays them out. What a communicator lacks is NCCL_ALGO_PROTO_IGNORE.
using TunerCosts = std::array<std::array<float, NCCL_NUM_PROTOCOLS>, NCCL_NUM_ALGORITHMS>;

/// An open plugin; its calls' results are the plugin's own.
struct TunerPlugin {
  std::shared_ptr<void> library;
  int version = 0;
  std::string name;
  std::function<ncclResult_t(size_t ranks, size_t nodes, void** context)> init;
  std::function<ncclResult_t(void* context, ncclFunc_t, size_t bytes, TunerCosts&, int* channels)> choose;
  std::function<ncclResult_t(void* context)> finalize;

  /// No version: the newest table there is. Errors name what the library has instead.
  static Result<TunerPlugin> open(const std::string& path, std::optional<int> version = {});
  /// "tuner plugin gyre, table 6: init: ncclSystemError"
  Error error(const char* call, ncclResult_t) const;
};

}  // namespace gyre::perf
