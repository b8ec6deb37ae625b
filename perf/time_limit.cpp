#include "perf/time_limit.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"

namespace gyre::perf {
namespace {

using Clock = std::chrono::steady_clock;

// Ranks meet about so often: what meeting costs does not show, and the limit is not passed by more.
constexpr double between_meetings = 0.25;

// What rank 0 says, on every rank.
Result<uint64_t> from_rank_0(transport::Bootstrap& bootstrap, uint64_t said) {
  const auto all = GYRE_TRY(bootstrap.all_gather(bootstrap.rank() == 0 ? fmt::format("{}", said) : std::string()));
  const auto number = parse_number(all[0]);
  if (!number) return Error{Code::internal, fmt::format("rank 0 said '{}' where a number was expected", all[0])};
  return *number;
}

}  // namespace

TimeLimit::TimeLimit(std::optional<double> seconds) {
  if (seconds) end_ = Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(*seconds));
}

double TimeLimit::remaining() const { return std::chrono::duration<double>(*end_ - Clock::now()).count(); }

Result<bool> TimeLimit::goes_on(transport::Bootstrap& bootstrap) {
  if (!end_) return true;
  if (!reached_) reached_ = GYRE_TRY(from_rank_0(bootstrap, remaining() > 0 ? 1 : 0)) == 0;
  return !reached_;
}

Result<uint64_t> TimeLimit::next(transport::Bootstrap& bootstrap, uint64_t left, uint64_t done, double seconds) {
  if (!end_ || left == 0) return left;
  if (reached_) return uint64_t{0};
  const double span = std::min(between_meetings, remaining());
  // At most as many again as were made: the first iterations are often slow, and say little.
  const double fit =
      done == 0 || seconds <= 0 ? 1 : std::clamp(span / seconds * static_cast<double>(done), 1.0, 2.0 * static_cast<double>(done));
  const uint64_t made = GYRE_TRY(from_rank_0(bootstrap, span > 0 ? std::min(left, static_cast<uint64_t>(fit)) : 0));
  reached_ = made == 0;
  return made;
}

}  // namespace gyre::perf
