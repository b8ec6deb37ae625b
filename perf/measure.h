// One row of a sweep, in one of its two ways: out of place, and in place.
#pragma once
#include "engine/communicator.h"
#include "perf/benchmark.h"

namespace gyre::perf {

struct Measured {
  double time_us = 0;  ///< of a call, averaged over iterations and ranks
  double algbw = 0;    ///< GB/s: bytes / time
  double busbw = 0;    ///< GB/s: algbw x bus_factor()
  uint64_t wrong = 0;  ///< elements over all ranks: results, inputs that were changed, and what was written behind an output
  bool checked = false;
};

/// Where a rank calls from and to; null for what it does not have.
struct Place {
  void* input = nullptr;
  void* output = nullptr;
  void* memory = nullptr;  ///< holds the output, and in place the input, too; guard_bytes behind what the case needs are ours
  bool in_place = false;
};
Place out_of_place(const Case&, Rank, void* input, void* output);
Place in_place(const Case&, Rank, void* output);

/// Makes `calls` calls and checks each.
Status check(engine::Communicator&, const Case&, const Place&, int calls, Measured&);
/// Times `iterations` calls after `warmup` others.
Status time(engine::Communicator&, const Case&, const Place&, int warmup, int iterations, Measured&);

}  // namespace gyre::perf
