// What `gyre-perf model` prints a row for.
#pragma once
#include <string>

#include "perf/commands.h"
#include "topo/select.h"

namespace gyre::perf {

/// "bucket 8x2 c2".
std::string named(const topo::Candidate&);
/// Sizes are those of nccl-tests: bytes of the larger of a rank's input and output.
double block_bytes(const topo::Query&, size_t bytes);

/// A row for each size: the choice on the simulator beside the best there; and the file of these times.
Status simulate_choices(const ModelCommand&, topo::Query);

}  // namespace gyre::perf
