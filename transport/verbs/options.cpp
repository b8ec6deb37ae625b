#include "transport/verbs/options.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstdlib>

namespace gyre::transport::verbs {
namespace {

/// As NCCL reads numbers: 0x1a and 032 are 26, and -1 is "not set".
template <class T>
Status read(const char* name, long long least, long long most, T& value) {
  const char* text = std::getenv(name);
  if (text == nullptr || *text == '\0') return {};
  char* end = nullptr;
  errno = 0;
  const long long number = std::strtoll(text, &end, 0);
  if (number == -1 && *end == '\0') return {};
  if (errno != 0 || end == text || *end != '\0' || number < least || number > most)
    return Error{Code::invalid_usage, fmt::format("{}={} is not a number from {} to {}", name, text, least, most)};
  value = static_cast<T>(number);
  return {};
}

}  // namespace

Result<PathOptions> PathOptions::from_environment() {
  PathOptions options;
  int relaxed = 2, adaptive = -1, pkey = -1;
  GYRE_TRY(read("NCCL_IB_TIMEOUT", 0, 31, options.timeout));
  GYRE_TRY(read("NCCL_IB_RETRY_CNT", 0, 7, options.retries));
  GYRE_TRY(read("NCCL_IB_SL", 0, 15, options.service_level));
  GYRE_TRY(read("NCCL_IB_TC", 0, 255, options.traffic_class));
  GYRE_TRY(read("NCCL_IB_PKEY", 0, UINT16_MAX, options.pkey_index));
  GYRE_TRY(read("NCCL_IB_PKEY_VALUE", 1, UINT16_MAX, pkey));
  GYRE_TRY(read("NCCL_IB_PCI_RELAXED_ORDERING", 0, 2, relaxed));
  GYRE_TRY(read("NCCL_IB_ADAPTIVE_ROUTING", 0, 1, adaptive));
  GYRE_TRY(read("NCCL_IB_AR_THRESHOLD", 0, UINT32_MAX, options.adaptive_threshold));
  GYRE_TRY(read("NCCL_IB_QPS_PER_CONNECTION", 1, 16, options.pairs));
  options.relaxed_ordering = relaxed != 0;
  options.relaxed_ordering_demanded = relaxed == 1;
  if (pkey >= 0) options.pkey_value = static_cast<uint16_t>(pkey);
  if (adaptive >= 0) options.adaptive_routing = adaptive == 1;
  return options;
}

}  // namespace gyre::transport::verbs
