// What nccl-tests reads from its environment, and sweeps do, too. Pure, so that tests bring their own variables.
#pragma once
#include <optional>

#include "transport/launch.h"

namespace gyre::perf {

/// NCCL_TESTS_MIN_BW: GB/s that the average bus bandwidth should have. Error: it is no such number.
Result<std::optional<double>> wanted_busbw(const transport::Environment&);

/// Whether an average is near enough to what was wanted: nine tenths of it, as in nccl-tests.
bool is_enough(double busbw, double wanted);

}  // namespace gyre::perf
