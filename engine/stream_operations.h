// What a plan takes of a GPU's stream where this waits for flags between kernels: of the rank that it takes the most of, so that all ranks
// count alike. It must not know: streams, where messages lie.
#pragma once
#include <cstddef>

#include "engine/device_steps.h"

namespace gyre::engine {

/// Operations of a collective on a stream at most, else its kernels are one that stays: a stream holds some thousand, and then blocks its
/// caller.
inline constexpr size_t most_stream_operations = 256;

size_t stream_operations(const DeviceSteps&);
/// No rank's are more, wherever its buffers lie.
bool fits_stream(const Plan&);

}  // namespace gyre::engine
