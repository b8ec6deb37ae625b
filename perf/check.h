// Checks a call: what every rank brings, and whether every element of what it has afterwards is right.
#pragma once
#include "perf/benchmark.h"

namespace gyre::perf {

/// Writes the rank's input.
void prepare(const Case&, Rank, void* input);
/// How many elements of the rank's output are wrong.
size_t count_wrong(const Case&, Rank, const void* output);
/// How many elements of the rank's input are no longer what prepare() wrote.
size_t count_changed(const Case&, Rank, const void* input);

/// Memory behind an output that no call may write to.
inline constexpr size_t guard_bytes = 256;
void set_guard(void* behind);
/// How many of its bytes were written to.
size_t count_trespasses(const void* behind);

}  // namespace gyre::perf
