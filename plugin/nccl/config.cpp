#include "plugin/nccl/config.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <span>

#include "base/log.h"

namespace gyre::plugin::nccl {
namespace {

constexpr size_t first_size = 24;      // of 2.14's
constexpr size_t first_of_call = 64;   // of 2.31's, of one collective
constexpr size_t largest_size = 4096;  // beyond any release: it is no config

ncclConfig_t undefined() {
  constexpr int open = NCCL_CONFIG_UNDEF_INT;
  return {sizeof(ncclConfig_t),
          NCCL_CONFIG_MAGIC,
          0,
          open,
          open,
          open,
          open,
          nullptr,
          open,
          open,
          nullptr,
          open,
          open,
          open,
          open,
          open,
          open,
          open,
          open,
          open,
          open,
          open,
          open,
          open,
          open,
          open};
}

// A field that is newer than the program's header may lie where that had padding.
void forget_newer(ncclConfig_t& config) {
  constexpr int open = NCCL_CONFIG_UNDEF_INT;
  const auto before = [&](unsigned minor) { return config.version < 20000 + 100 * minor; };
  if (before(17)) config.cgaClusterSize = config.minCTAs = config.maxCTAs = open, config.netName = nullptr;
  if (before(18)) config.splitShare = open;
  if (before(26)) config.trafficClass = open;
  if (before(27)) config.collnetEnable = config.CTAPolicy = config.shrinkShare = config.nvlsCTAs = open, config.commName = nullptr;
}

/// What is newer than the program's release is as in `open`.
template <class Given>
Result<Given> read(const Given* given, const Given& open, size_t least_size, const char* initializer) {
  Given config = open;
  size_t size = 0;
  std::memcpy(&size, given, sizeof size);
  if (size < least_size || size > largest_size)
    return Error{Code::invalid_argument, fmt::format("config.size is {}: begin with {}", size, initializer)};
  std::memcpy(&config, given, std::min(size, sizeof config));
  if (config.magic != NCCL_CONFIG_MAGIC)
    return Error{Code::invalid_argument, fmt::format("config.magic is {:#x}: begin with {}", config.magic, initializer)};
  return config;
}

struct Field {
  const char* name;
  int value, least, most;
};
Status check(std::span<const Field> fields) {
  for (const Field& field : fields) {
    if (field.value != NCCL_CONFIG_UNDEF_INT && (field.value < field.least || field.value > field.most))
      return Error{Code::invalid_argument, fmt::format("config.{} is {}", field.name, field.value)};
  }
  return {};
}
Status check_order(int least, int most) {
  if (least == NCCL_CONFIG_UNDEF_INT || most == NCCL_CONFIG_UNDEF_INT || least <= most) return {};
  return Error{Code::invalid_argument, fmt::format("config.minCTAs is {}, more than maxCTAs, {}", least, most)};
}

Status check(const ncclConfig_t& config) {
  const Field fields[] = {{"blocking", config.blocking, 0, 1},           {"cgaClusterSize", config.cgaClusterSize, 0, INT_MAX},
                          {"minCTAs", config.minCTAs, 1, INT_MAX},       {"maxCTAs", config.maxCTAs, 1, INT_MAX},
                          {"splitShare", config.splitShare, 0, 1},       {"shrinkShare", config.shrinkShare, 0, 1},
                          {"collnetEnable", config.collnetEnable, 0, 1}, {"CTAPolicy", config.CTAPolicy, 0, INT_MAX}};
  GYRE_TRY(check(fields));
  return check_order(config.minCTAs, config.maxCTAs);
}

// As NCCL reads it: 0x1 and 01 are 1, what is no number is 0, and another number is passed over.
std::optional<bool> blocking_by_environment() {
  const char* const text = std::getenv("NCCL_COMM_BLOCKING");
  if (text == nullptr || *text == '\0') return {};
  errno = 0;
  const long long value = std::strtoll(text, nullptr, 0);
  if (errno == 0 && (value == 0 || value == 1)) return value == 1;
  static std::atomic_flag said;
  if (!said.test_and_set()) log::warn("NCCL_COMM_BLOCKING={} is passed over, as NCCL does: it is not 0 or 1", text);
  return {};
}

}  // namespace

Result<Settings> settings(const ncclConfig_t* given, Settings otherwise) {
  Settings made = given == nullptr ? otherwise : Settings();
  if (given != nullptr) {
    ncclConfig_t config = GYRE_TRY(read(given, undefined(), first_size, "NCCL_CONFIG_INITIALIZER"));
    forget_newer(config);
    GYRE_TRY(check(config));
    if (config.blocking != NCCL_CONFIG_UNDEF_INT) made.blocking = config.blocking == 1;
  }
  if (const auto given_for_all = blocking_by_environment()) made.blocking = *given_for_all;
  return made;
}

// What it says of CTAs and clusters is of NCCL's kernels; options that are no NCCL's, and the profiler's tag, NCCL passes over, too.
Status can_do(const ncclCollConfig_t* given) {
  if (given == nullptr) return {};
  constexpr int open = NCCL_CONFIG_UNDEF_INT;
  const ncclCollConfig_t undefined{sizeof undefined, NCCL_CONFIG_MAGIC, 0, nullptr, open, open, open, open, nullptr, 1, open, 0, nullptr};
  const ncclCollConfig_t config = GYRE_TRY(read(given, undefined, first_of_call, "NCCL_COLLCONFIG_INITIALIZER"));
  const Field fields[] = {{"minCTAs", config.minCTAs, 1, INT_MAX},
                          {"maxCTAs", config.maxCTAs, 1, INT_MAX},
                          {"nvlsCTAs", config.nvlsCTAs, 1, INT_MAX},
                          {"cgaClusterSize", config.cgaClusterSize, 0, INT_MAX},
                          {"forceAlgSelection", config.forceAlgSelection, 0, 1},
                          {"CTAPolicy", config.CTAPolicy, 0, INT_MAX}};
  GYRE_TRY(check(fields));
  GYRE_TRY(check_order(config.minCTAs, config.maxCTAs));
  if (config.algSelection != nullptr && *config.algSelection != '\0' && config.forceAlgSelection != 0)
    return Error{Code::invalid_usage,
                 fmt::format("config.algSelection is {}: gyre has algorithms of its own (GYRE_ALGORITHM), and takes none "
                             "of NCCL's unless forceAlgSelection is 0",
                             config.algSelection)};
  if (config.launchCompletionEvent != nullptr) return Error{Code::invalid_usage, "gyre records no config.launchCompletionEvent"};
  return {};
}

Status can_do(const ncclEncryptionConfig_t* given) {
  if (given == nullptr) return Error{Code::invalid_argument, "config is NULL"};
  const ncclEncryptionConfig_t none{sizeof none, NCCL_CONFIG_MAGIC, 0, NCCL_ENCRYPTION_MODE_NONE, nullptr};
  const ncclEncryptionConfig_t config = GYRE_TRY(read(given, none, sizeof none, "NCCL_ENCRYPTION_CONFIG_INITIALIZER"));
  if (config.mode == NCCL_ENCRYPTION_MODE_NONE) return {};
  if (config.mode != NCCL_ENCRYPTION_MODE_PSK) return Error{Code::invalid_argument, fmt::format("config.mode is {}", config.mode)};
  return Error{Code::invalid_usage, "gyre does not encrypt its connections"};
}

}  // namespace gyre::plugin::nccl
