// The subcommands of gyre-perf; each returns its exit code.
#pragma once
#include <optional>
#include <string>

#include "base/config.h"
#include "perf/sweep.h"

namespace gyre::perf {

struct SweepCommand {
  SweepOptions sweep;
  std::optional<int> ranks;  ///< --ranks; none: a launcher's, or 2 local ones
  std::string json;          ///< --json FILE; empty: none
  bool explain = false;      ///< --explain: also what each size was chosen from
  std::string command_line;
};
/// Runs a sweep, with ranks of our own or as one of a launcher's.
int run_sweep(const SweepCommand&, const Config&);

/// Prints "gyre-perf: …" to stderr; returns the exit code of an error.
int complain(const Error&);

}  // namespace gyre::perf
