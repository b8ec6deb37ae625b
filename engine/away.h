// From how many bytes on what a rank writes goes past the caches (kernels::copy_away).
#pragma once
#include <cstddef>
#include <cstdint>
#include <filesystem>

#include "engine/facts.h"

namespace gyre::engine {

/// The largest cache that a processor has, and how many have it together. Zeros: the system does not say.
struct SharedCache {
  size_t bytes = 0;
  int processors = 0;
};
/// `folder`: of a processor's caches, as Linux has it in sysfs.
SharedCache shared_cache(const std::filesystem::path& folder);

struct Away {
  static constexpr size_t never = SIZE_MAX;

  /// Bytes of a message to a peer's slots: in the cache each line would first come back from where the peer has read it, up to ten times as
  /// slowly where that is far away (perf/results/2026-11-23-slots). Never where ranks share processors
  /// that can all have this cache: whoever reads it may be the next on this one; nor where they have found to share one
  /// (engine/copy_trial.h).
  size_t messages = never;
  /// Bytes of this rank's buffers in a call, for its results: from there on those of all ranks of a cache take half of it or more, and
  /// lines that are written would be read from memory first, and have left the cache when the user's program reads them
  /// (perf/results/2026-11-23-results).
  size_t results = never;
  /// Least bytes of a call's larger buffer, or of a group's message, for messages to go past the caches: in the cache few lines are there
  /// sooner, wherever the reader is, than by way of the memory (perf/results/2026-11-26-small-messages).
  size_t calls = 0;

  static Away of(const HostLoad&, const SharedCache&, bool one_cache);
};

}  // namespace gyre::engine
