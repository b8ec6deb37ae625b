#include "plugin/nccl/wrap_rules.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/version.h"

namespace gyre::plugin::nccl::wrap {
namespace {

constexpr std::string_view several_nccls = "several copies of NCCL";

/// Some GPUs have no arithmetic of these, and ranks see their own only.
bool is_float8(DataType type) { return type == DataType::float8e4m3 || type == DataType::float8e5m2; }

/// Those that are taken, in the table's order, however they were written.
std::string collectives(const Rules& rules) {
  if (!rules.any()) return "none";
  std::vector<std::string_view> names;
  for (const Collective collective : all_collectives()) {
    if (rules.taken[static_cast<size_t>(collective)]) names.push_back(name(collective));
  }
  return fmt::format("{}", fmt::join(names, ","));
}

std::vector<std::string_view> lines(std::string_view text) {
  std::vector<std::string_view> all;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    all.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return all;
}

bool says(std::string_view ballot, std::string_view line) {
  const auto all = lines(ballot);
  return std::find(all.begin(), all.end(), line) != all.end();
}

std::string difference(size_t rank, std::string_view own, std::string_view first) {
  const auto mine = lines(own);
  const auto theirs = lines(first);
  if (mine.size() != theirs.size()) return fmt::format("rank {} speaks of other things than rank 0", rank);
  const auto [here, there] = std::mismatch(mine.begin(), mine.end(), theirs.begin());
  return fmt::format("rank {} has {}, rank 0 has {}", rank, *here, *there);
}

}  // namespace

Rules Rules::of(const Config& config) {
  Rules rules;
  for (const std::string_view rest = *config.collectives; const Collective collective : all_collectives()) {
    for (size_t at = 0; at < rest.size();) {
      const size_t end = std::min(rest.find(',', at), rest.size());
      if (rest.substr(at, end - at) == name(collective)) rules.taken[static_cast<size_t>(collective)] = true;
      at = end + 1;
    }
  }
  rules.least_bytes = *config.min_bytes;
  if (*config.max_bytes != 0) rules.most_bytes = *config.max_bytes;
  return rules;
}

bool Rules::any() const { return least_bytes <= most_bytes && std::find(taken.begin(), taken.end(), true) != taken.end(); }

std::vector<engine::Call> Rules::examples() const {
  constexpr DataType type = DataType::float32;
  std::vector<engine::Call> calls;
  for (const Collective collective : all_collectives()) {
    if (!taken[static_cast<size_t>(collective)]) continue;
    for (const size_t bytes : {least_bytes, most_bytes}) {
      if (bytes == Rules().most_bytes) continue;
      calls.push_back({collective, std::max<size_t>(bytes / size_of(type), 1), type, ReduceOp::sum, 0, 0});
    }
  }
  return calls;
}

std::string_view Rules::why_not(const engine::Call& call, int ranks, bool on_gpu) const {
  if (!taken[static_cast<size_t>(call.collective)]) return "GYRE_COLLECTIVES does not have it";
  if (engine::refuse(call, ranks)) return "gyre does not have such a call";
  const size_t bytes = call.count * size_of(call.type);
  if (bytes == 0) return "there is nothing to do";
  if (bytes < least_bytes) return "it is smaller than GYRE_MIN_BYTES";
  if (bytes > most_bytes) return "it is larger than GYRE_MAX_BYTES";
  if (on_gpu && reduces(call.collective) && is_float8(call.type)) return "gyre leaves sums of 8-bit floats on GPUs to NCCL";
  return {};
}

// The copies come first, since with several a rank's options do not count.
std::string ballot(const Config& config, bool buffers_on_gpu, size_t nccls) {
  const std::string_view copies = nccls > 1 ? several_nccls : "one NCCL";
  return fmt::format("gyre {}\n{}\nGYRE_COLLECTIVES={}\nGYRE_MIN_BYTES={}\nGYRE_MAX_BYTES={}\nbuffers in {}", version, copies,
                     collectives(Rules::of(config)), *config.min_bytes, *config.max_bytes,
                     buffers_on_gpu ? "a GPU's memory" : "host memory");
}

std::string objection(const std::vector<std::string>& ballots) {
  for (size_t rank = 1; rank < ballots.size(); ++rank) {
    if (ballots[rank] != ballots[0]) return difference(rank, ballots[rank], ballots[0]);
  }
  if (says(ballots[0], several_nccls)) return fmt::format("the ranks' processes have {}", several_nccls);
  if (says(ballots[0], "GYRE_COLLECTIVES=none")) return "no rank has GYRE_COLLECTIVES that sizes leave any calls of";
  return {};
}

}  // namespace gyre::plugin::nccl::wrap
