// What CUDA's driver says of the program's memory and streams, where the program has loaded it. Nothing is loaded here; where there is no
// driver, or GYRE_DEVICE=host, all memory is the host's and streams mean nothing.
#pragma once
#include "base/config.h"
#include "plugin/abi/nccl.h"

namespace gyre::plugin::nccl::cuda {

/// Looks for the driver; when communicators are made, which is after the program has chosen its device.
void look(const Config&);
bool present();
/// That of this thread's context; 0: none.
int current_device();
/// The memory can be read by the device only.
bool on_gpu(const void*);
/// Waits for what the stream has been given so far.
Status wait_for(cudaStream_t);

}  // namespace gyre::plugin::nccl::cuda
