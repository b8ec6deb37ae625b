// Loads all step kernels into the current device. A kernel that is loaded when it is first launched takes the context's lock and waits for
// the GPU, which may wait for the launch: so communicators load all when they are made, and no call into CUDA does it later.
#pragma once
#include "base/result.h"

namespace gyre::kernels {

/// An error names the kernel. Those of 8-bit floats may lack, where the device has no such arithmetic.
Status load_step_kernels();

}  // namespace gyre::kernels
