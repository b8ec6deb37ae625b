#include "plugin/nccl/wrap_rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "base/text.h"
#include "base/version.h"
#include "plugin/tuner.h"
#include "plugin/tuner_file.h"
#include "plugin/tuner_words.h"

namespace gyre::plugin::nccl::wrap {
namespace {

constexpr size_t most_said = 300;  // of what is wrong with a profile
constexpr std::string_view several_nccls = "several copies of NCCL";
constexpr std::string_view not_the_profiles = "the profile leaves it to NCCL";

auto& sizes_of(auto& rules, Collective collective) { return rules.taken[static_cast<size_t>(collective)]; }

/// NCCL tells its tuner the larger of a rank's input and output: so many blocks of count times element.
uint64_t tuner_blocks(Collective collective, int ranks) {
  const engine::Extent byte = engine::extent({collective, 1, DataType::uint8, ReduceOp::sum, 0, 0}, 0, ranks);
  return std::max(byte.input_bytes, byte.output_bytes);
}

/// None where GYRE_COLLECTIVES does.
const TunerFile& file_that_decides(const Config& config) {
  return tuner_file(config.collectives.value.empty() ? *config.tuner_file : std::string());
}

/// By which a rank that has another differs, or has none; in a line.
std::string said_of_profile(const Config& config) {
  const TunerFile& file = file_that_decides(config);
  if (file.hash == 0) return "no profile";
  if (!file.rules) return printable(fmt::format("no profile: {}", file.rules.error().what), most_said);
  if (std::ranges::none_of(*file.rules, &TunerRule::gyre_beside)) return "a file that gives gyre nothing";
  return fmt::format("a file with the hash {:016x}", file.hash);
}

/// Some GPUs have no arithmetic of these, and ranks see their own only.
bool is_float8(DataType type) { return type == DataType::float8e4m3 || type == DataType::float8e5m2; }

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
  rules.least_bytes = *config.min_bytes;
  if (*config.max_bytes != 0) rules.most_bytes = *config.max_bytes;
  if (rules.least_bytes > rules.most_bytes) return rules;
  for (const std::string_view rest = *config.collectives; const Collective collective : all_collectives()) {
    for (size_t at = 0; at < rest.size();) {
      const size_t end = std::min(rest.find(',', at), rest.size());
      if (rest.substr(at, end - at) == name(collective)) sizes_of(rules, collective) = {{rules.least_bytes, rules.most_bytes}};
      at = end + 1;
    }
  }
  const auto& given = file_that_decides(config).rules;
  if (!given) return rules;
  std::ranges::copy_if(*given, std::back_inserter(rules.jobs), &TunerRule::gyre_beside);
  rules.by_profile = !rules.jobs.empty();
  return rules;
}

Rules Rules::in_job(int ranks, int nodes) const {
  Rules own = *this;
  own.jobs.clear();
  for (const TunerRule& rule : rules_beside(jobs, ranks, nodes)) {
    const auto collective = collective_named(tuner_collectives.at(static_cast<size_t>(rule.collective)));
    const uint64_t blocks = tuner_blocks(*collective, ranks);
    const size_t least = rule.least_bytes / blocks + (rule.least_bytes % blocks == 0 ? 0 : 1);
    const size_t most = rule.most_bytes == UINT64_MAX ? SIZE_MAX : rule.most_bytes / blocks;
    const Sizes sizes{std::max(least, least_bytes), std::min(most, most_bytes)};
    if (sizes.least <= sizes.most) sizes_of(own, *collective).push_back(sizes);
  }
  return own;
}

bool Rules::any() const {
  return !jobs.empty() || std::any_of(taken.begin(), taken.end(), [](const auto& sizes) { return !sizes.empty(); });
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
  if (bytes < least_bytes) return "it is smaller than GYRE_MIN_BYTES";
  if (bytes > most_bytes) return "it is larger than GYRE_MAX_BYTES";
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

std::string why_no_profile(const Config& config) {
  const auto& given = file_that_decides(config).rules;
  return given ? "" : given.error().what;
}

// The copies come first, since with several a rank's options do not count.
std::string ballot(const Config& config, bool buffers_on_gpu, size_t nccls) {
  const std::string_view copies = nccls > 1 ? several_nccls : "one NCCL";
  return fmt::format("gyre {}\n{}\nGYRE_COLLECTIVES={}\n{}\nGYRE_MIN_BYTES={}\nGYRE_MAX_BYTES={}\nbuffers in {}", version, copies,
                     Rules::of(config).collectives(), said_of_profile(config), *config.min_bytes, *config.max_bytes,
                     buffers_on_gpu ? "a GPU's memory" : "host memory");
}

std::string objection(const std::vector<std::string>& ballots) {
  for (size_t rank = 1; rank < ballots.size(); ++rank) {
    if (ballots[rank] != ballots[0]) return difference(rank, ballots[rank], ballots[0]);
  }
  return says(ballots[0], several_nccls) ? fmt::format("the ranks' processes have {}", several_nccls) : "";
}

}  // namespace gyre::plugin::nccl::wrap
