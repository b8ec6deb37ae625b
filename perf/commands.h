// The subcommands of gyre-perf; each returns its exit code.
#pragma once
#include <optional>
#include <string>

#include "base/config.h"
#include "perf/sweep.h"

namespace gyre::perf {

struct AllReduceCommand {
  SweepOptions sweep;
  std::optional<int> ranks;  ///< --ranks; none: a launcher's, or 2 local ones
  std::string json;          ///< --json FILE; empty: none
  std::string command_line;
};
int all_reduce(const AllReduceCommand&, const Config&);

/// Prints "gyre-perf: …" to stderr; returns the exit code of an error.
int complain(const Error&);

}  // namespace gyre::perf
