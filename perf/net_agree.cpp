#include "perf/net_agree.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

namespace gyre::perf {

Status agree(transport::Bootstrap& bootstrap, const Status& mine) {
  const auto all = bootstrap.all_gather(mine ? "" : mine.error().what);
  if (!all) return mine ? all.error() : mine.error();  // that others are gone says less
  const auto first = std::find_if(all->begin(), all->end(), [](const std::string& text) { return !text.empty(); });
  if (first == all->end()) return {};
  const auto rank = first - all->begin();
  if (rank == bootstrap.rank()) return mine.error();
  return Error{mine ? Code::remote : mine.error().code, fmt::format("rank {}: {}", rank, *first)};
}

bool says(const transport::Bootstrap& bootstrap, const Status& mine, const Error& error) {
  if (!mine && error.what == mine.error().what) return true;  // the others, which agreed on it, may have given up before this rank looks
  return bootstrap.failure() == nullptr && !error.what.starts_with("rank ");
}

}  // namespace gyre::perf
