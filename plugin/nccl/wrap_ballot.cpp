#include "plugin/nccl/wrap_ballot.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "base/text.h"
#include "base/version.h"
#include "plugin/nccl/wrap_offer.h"

namespace gyre::plugin::nccl::wrap {
namespace {

constexpr size_t most_said = 300;  // of what is wrong with a profile
constexpr std::string_view several_nccls = "several copies of NCCL";

/// By which a rank that has another differs, or has none; in a line.
std::string said_of_profile(const Config& config) {
  const TunerFile& file = file_that_decides(config);
  if (file.hash == 0) return "no profile";
  if (!file.rules) return printable(fmt::format("no profile: {}", file.rules.error().what), most_said);
  if (std::ranges::none_of(*file.rules, &TunerRule::gyre_beside)) return "a file that gives gyre nothing";
  return fmt::format("a file with the hash {:016x}", file.hash);
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

std::string said_of_collectives(const Config& config) {
  if (config.collectives.origin == "default") return "no GYRE_COLLECTIVES";
  return "GYRE_COLLECTIVES=" + Offer::of(config).by_options.collectives();
}

}  // namespace

// The copies come first, since with several a rank's options do not count.
std::string ballot(const Config& config, bool buffers_on_gpu, size_t nccls, bool blocks) {
  const std::string_view copies = nccls > 1 ? several_nccls : "one NCCL";
  return fmt::format("gyre {}\n{}\n{}\n{}\nGYRE_MIN_BYTES={}\nGYRE_MAX_BYTES={}\nbuffers in {}\na communicator that {}", version, copies,
                     said_of_collectives(config), said_of_profile(config), *config.min_bytes, *config.max_bytes,
                     buffers_on_gpu ? "a GPU's memory" : "host memory", blocks ? "blocks" : "does not block");
}

std::string objection(const std::vector<std::string>& ballots) {
  for (size_t rank = 1; rank < ballots.size(); ++rank) {
    if (ballots[rank] != ballots[0]) return difference(rank, ballots[rank], ballots[0]);
  }
  return says(ballots[0], several_nccls) ? fmt::format("the ranks' processes have {}", several_nccls) : "";
}

}  // namespace gyre::plugin::nccl::wrap
