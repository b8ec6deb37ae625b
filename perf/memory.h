// How much memory the ranks of a sweep may take: the kernel lends what it does not have, and kills who uses it.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "perf/sweep.h"

namespace gyre::perf {

/// Bytes that this process could have: what the kernel takes for available, or less where one of its control groups has less left. None:
/// the system does not say. `root` stands in for / in tests.
std::optional<uint64_t> available_memory(const std::string& root = "");

/// Of a rank.
struct MemoryOfRank {
  std::string host;
  std::optional<uint64_t> available;
};
/// The largest size for which all ranks' buffers fit, with an eighth to spare; none: that is not known. Ranks of a host share it.
std::optional<uint64_t> largest_that_fits(const std::vector<MemoryOfRank>&, int communicators);

/// Takes from a sweep the sizes that do not fit, on all ranks alike, and says so; empty: all fit. Called by all ranks. Error: none fits.
Result<std::string> fit_to_memory(transport::Bootstrap&, const MemoryOfRank& mine, SweepOptions&);

}  // namespace gyre::perf
