// CUDA's hardware queues of the process, of which there are 8 unless CUDA_DEVICE_MAX_CONNECTIONS says otherwise. Streams that share one
// wait behind each other, and so behind a closed gate of gyre's: one of PyTorch's streams, say, of which there are 32.
#pragma once

namespace gyre::plugin::nccl {

/// CUDA_DEVICE_MAX_CONNECTIONS has been set here, when the library was loaded, before CUDA starts, or so in a process that has started
/// this.
bool gave_connections() noexcept;

}  // namespace gyre::plugin::nccl
