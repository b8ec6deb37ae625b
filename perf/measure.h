// One row of a sweep, in one of its two ways: out of place, and in place. On one communicator, or on several in turn, each with buffers of
// its own.
#pragma once
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "engine/communicator.h"
#include "perf/benchmark.h"
#include "perf/histogram.h"
#include "perf/time_limit.h"

namespace gyre::perf {

struct Measured {
  double time_us = 0;  ///< of a call, averaged over iterations, and over ranks as Average says
  double algbw = 0;    ///< GB/s: bytes / time
  double busbw = 0;    ///< GB/s: algbw x bus_factor()
  uint64_t wrong = 0;  ///< elements over all ranks: results, inputs that were changed, and what was written behind an output
  bool checked = false;
  uint64_t iterations = 0;                   ///< of every rank; fewer than asked where the time limit came first
  std::optional<Percentiles> percentiles{};  ///< where they were asked for
};

/// Whose time counts; numbered as nccl-tests' -a is.
enum class Average : uint8_t { rank_0, mean, least, most };
/// Where ranks wait for each other while they are timed, numbered as nccl-tests' -z is. A call here always waits for its own end, so that
/// `none` and `call` are the same.
enum class Blocking : uint8_t { none, barrier_timed, call, barrier_untimed };

struct Timing {
  int warmup = 17;  ///< large calls try what is faster in their first 8 or 16 (engine/contest.h)
  int iterations = 20;
  int calls = 1;  ///< that make an iteration, on each communicator
  Blocking blocking = Blocking::none;
  Average average = Average::mean;
  bool percentiles = false;
  int skip = 0;  ///< iterations before those that percentiles are of
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

/// A communicator and what it is called with.
struct Lane {
  engine::Communicator* communicator;
  Place place;
};

/// Makes `calls` calls on every lane and checks each; fewer, but one, where the limit is reached.
Status check(std::span<const Lane>, const Case&, int calls, TimeLimit&, Measured&);
/// Times iterations after the warm-up; at least one, however late it is.
Status time(std::span<const Lane>, const Case&, const Timing&, TimeLimit&, Measured&);

}  // namespace gyre::perf
