#include "perf/nccl_tests_environment.h"

#include <fmt/format.h>

#include <charconv>

namespace gyre::perf {

Result<std::optional<double>> wanted_busbw(const transport::Environment& environment) {
  const auto given = environment.get("NCCL_TESTS_MIN_BW");
  if (!given || given->empty()) return std::optional<double>();
  double wanted = 0;
  const char* end = given->data() + given->size();
  const auto [at, error] = std::from_chars(given->data(), end, wanted);
  if (error != std::errc() || at != end || !(wanted >= 0 && wanted <= 1e9)) {
    return Error{Code::invalid_argument, fmt::format("NCCL_TESTS_MIN_BW={}: not a bandwidth in GB/s, such as 10 or 0.5", *given)};
  }
  return std::optional(wanted);
}

bool is_enough(double busbw, double wanted) { return busbw >= 0.9 * wanted; }

}  // namespace gyre::perf
