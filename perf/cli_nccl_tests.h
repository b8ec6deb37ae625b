// The flags of a sweep that only nccl-tests' users know. What means something on host memory does it; what does not is refused with the
// reason where the figures would not be what was asked for, and taken with a note where nothing hangs on it, so that scripts go on working.
#pragma once
#include <CLI/CLI.hpp>
#include <optional>
#include <string>

#include "perf/commands.h"

namespace gyre::perf {

/// -m -N -z -a -I -K -u: what an iteration is, and what is told of it.
void add_timing_flags(CLI::App*, SweepOptions&);
/// -t -g -T -S -M, and those without an effect: -p -y -x -V -C -R -G -D.
void add_nccl_tests_flags(CLI::App*, SweepCommand&);
/// A positive number of seconds, with a point or without.
void add_seconds(CLI::App*, const std::string& names, std::optional<double>& value, const std::string& text);
/// Flags that are right by themselves and not together. Error: which, and what would be right.
Status check_together(const SweepCommand&);

}  // namespace gyre::perf
