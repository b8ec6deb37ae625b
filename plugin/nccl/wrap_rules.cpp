#include "plugin/nccl/wrap_rules.h"

#include <fmt/format.h>

#include <algorithm>

namespace gyre::plugin::nccl::wrap {
namespace {

constexpr std::string_view not_the_profiles = "the profile leaves it to NCCL";

const std::vector<Rules::Sizes>& sizes_of(const Rules& rules, Collective collective) {
  return rules.taken[static_cast<size_t>(collective)];
}

/// Some GPUs have no arithmetic of these, and ranks see their own only.
bool is_float8(DataType type) { return type == DataType::float8e4m3 || type == DataType::float8e5m2; }

}  // namespace

bool Rules::any() const {
  return std::ranges::any_of(taken, [](const auto& sizes) { return !sizes.empty(); });
}

std::vector<engine::Call> Rules::examples(int ranks) const {
  constexpr DataType type = DataType::float32;
  std::vector<engine::Call> calls;
  for (const Collective collective : all_collectives()) {
    for (const Sizes& sizes : sizes_of(*this, collective)) {
      for (const size_t bytes : {sizes.least, sizes.most}) {
        const engine::Call call{collective, std::max<size_t>(bytes / size_of(type), 1), type, ReduceOp::sum, 0, 0};
        if (!engine::refuse(call, ranks)) calls.push_back(call);  // a bound may be beyond all calls
      }
    }
  }
  return calls;
}

std::string_view Rules::why_not(const engine::Call& call, int ranks, bool on_gpu) const {
  const auto& sizes = sizes_of(*this, call.collective);
  if (sizes.empty()) return by_profile ? not_the_profiles : "GYRE_COLLECTIVES does not have it";
  if (engine::refuse(call, ranks)) return "gyre does not have such a call";
  const size_t bytes = call.count * size_of(call.type);
  if (bytes == 0) return "there is nothing to do";
  if (bytes < limits.least) return "it is smaller than GYRE_MIN_BYTES";
  if (bytes > limits.most) return "it is larger than GYRE_MAX_BYTES";
  const auto next = std::upper_bound(sizes.begin(), sizes.end(), bytes, [](size_t b, const Sizes& s) { return b < s.least; });
  if (next == sizes.begin() || bytes > (next - 1)->most) return not_the_profiles;
  if (on_gpu && reduces(call.collective) && is_float8(call.type)) return "gyre leaves sums of 8-bit floats on GPUs to NCCL";
  return {};
}

std::string Rules::collectives() const {
  std::vector<std::string_view> names;
  for (const Collective collective : all_collectives()) {
    if (!sizes_of(*this, collective).empty()) names.push_back(name(collective));
  }
  return names.empty() ? "none" : fmt::format("{}", fmt::join(names, ","));
}

}  // namespace gyre::plugin::nccl::wrap
