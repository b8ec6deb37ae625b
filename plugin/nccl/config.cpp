#include "plugin/nccl/config.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "base/log.h"

namespace gyre::plugin::nccl {
namespace {

constexpr size_t first_size = 24;      // of 2.14's
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

Result<ncclConfig_t> read(const ncclConfig_t* given) {
  ncclConfig_t config = undefined();
  size_t size = 0;
  std::memcpy(&size, given, sizeof size);
  if (size < first_size || size > largest_size)
    return Error{Code::invalid_argument, fmt::format("config.size is {}: begin with NCCL_CONFIG_INITIALIZER", size)};
  std::memcpy(&config, given, std::min(size, sizeof config));
  if (config.magic != NCCL_CONFIG_MAGIC)
    return Error{Code::invalid_argument, fmt::format("config.magic is {:#x}: begin with NCCL_CONFIG_INITIALIZER", config.magic)};
  forget_newer(config);
  return config;
}

Status check(const ncclConfig_t& config) {
  struct Field {
    const char* name;
    int value, least, most;
  };
  const Field fields[] = {{"blocking", config.blocking, 0, 1},           {"cgaClusterSize", config.cgaClusterSize, 0, INT_MAX},
                          {"minCTAs", config.minCTAs, 1, INT_MAX},       {"maxCTAs", config.maxCTAs, 1, INT_MAX},
                          {"splitShare", config.splitShare, 0, 1},       {"shrinkShare", config.shrinkShare, 0, 1},
                          {"collnetEnable", config.collnetEnable, 0, 1}, {"CTAPolicy", config.CTAPolicy, 0, INT_MAX}};
  for (const Field& field : fields) {
    if (field.value != NCCL_CONFIG_UNDEF_INT && (field.value < field.least || field.value > field.most))
      return Error{Code::invalid_argument, fmt::format("config.{} is {}", field.name, field.value)};
  }
  if (config.minCTAs != NCCL_CONFIG_UNDEF_INT && config.maxCTAs != NCCL_CONFIG_UNDEF_INT && config.minCTAs > config.maxCTAs)
    return Error{Code::invalid_argument, fmt::format("config.minCTAs is {}, more than maxCTAs, {}", config.minCTAs, config.maxCTAs)};
  return {};
}

}  // namespace

Result<Settings> settings(const ncclConfig_t* given, Settings otherwise) {
  Settings made = given == nullptr ? otherwise : Settings();
  if (given != nullptr) {
    const ncclConfig_t config = GYRE_TRY(read(given));
    GYRE_TRY(check(config));
    if (config.blocking != NCCL_CONFIG_UNDEF_INT) made.blocking = config.blocking == 1;
  }
  if (const char* text = std::getenv("NCCL_COMM_BLOCKING"); text != nullptr && *text != '\0') {
    const std::string_view value = text;
    if (value == "0" || value == "1")
      made.blocking = value == "1";
    else
      log::warn("NCCL_COMM_BLOCKING={} is passed over, as NCCL does: it is not 0 or 1", value);
  }
  return made;
}

}  // namespace gyre::plugin::nccl
