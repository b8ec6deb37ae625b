#include "transport/verbs/options.h"

#include <fmt/format.h>

#include <charconv>
#include <cstdlib>
#include <cstring>

namespace gyre::transport::verbs {
namespace {

template <class T>
Status read(const char* name, unsigned least, unsigned most, T& value) {
  const char* text = std::getenv(name);
  if (text == nullptr || *text == '\0') return {};
  unsigned number = 0;
  const char* end = text + std::strlen(text);
  const auto [stopped, error] = std::from_chars(text, end, number);
  if (error != std::errc{} || stopped != end || number < least || number > most)
    return Error{Code::invalid_usage, fmt::format("{}={} is not a number from {} to {}", name, text, least, most)};
  value = static_cast<T>(number);
  return {};
}

}  // namespace

Result<PathOptions> PathOptions::from_environment() {
  PathOptions options;
  unsigned relaxed = 2;
  GYRE_TRY(read("NCCL_IB_TIMEOUT", 1, 31, options.timeout));
  GYRE_TRY(read("NCCL_IB_RETRY_CNT", 0, 7, options.retries));
  GYRE_TRY(read("NCCL_IB_SL", 0, 15, options.service_level));
  GYRE_TRY(read("NCCL_IB_TC", 0, 255, options.traffic_class));
  GYRE_TRY(read("NCCL_IB_PKEY", 0, UINT16_MAX, options.pkey_index));
  GYRE_TRY(read("NCCL_IB_PCI_RELAXED_ORDERING", 0, 2, relaxed));
  GYRE_TRY(read("NCCL_IB_QPS_PER_CONNECTION", 1, 16, options.pairs));
  options.relaxed_ordering = relaxed != 0;
  return options;
}

}  // namespace gyre::transport::verbs
