// The families of schedules. Each is a function from a shape to a Schedule and knows nothing of buffers, streams or sockets.
#pragma once
#include <optional>
#include <span>
#include <string_view>

#include "schedule/schedule.h"

namespace gyre::topo {

/// All-reduce around the ring 0 → 1 → … → 0, unfused: reduce-scatter, then all-gather; 2(ranks-1) messages of 1/ranks of the buffer.
/// Each channel runs it on chunks of its own. Index rule: Patarasuk and Yuan, "Bandwidth optimal all-reduce algorithms" (2009), as NCCL
/// runs it.
schedule::Schedule ring(int ranks, uint32_t channels);
/// All-reduce by a parameter server: rank 0 receives all, reduces in rank order, and sends the result to everybody. The baseline.
schedule::Schedule naive(int ranks, uint32_t channels);
/// All-reduce in one hop: every rank sends its input to all others and reduces in rank order for itself.
schedule::Schedule one_shot(int ranks, uint32_t channels);

struct Family {
  std::string_view name;
  schedule::Schedule (*make)(int ranks, uint32_t channels);
};

std::span<const Family> families();
/// Null when no family has this name.
const Family* family_named(std::string_view name);

}  // namespace gyre::topo
