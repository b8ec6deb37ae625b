// The step kernels themselves: reduce_copy, or reduce_list, shared by all threads of a launch. Written for nvcc; test/simt runs them on the
// host.
#pragma once
#include "kernels/reduce_list.h"

namespace gyre::kernels {

/// With blocks of at most step_threads threads, a multiple of a warp.
template <class R, int sources, int destinations, int packs>
__global__ void __launch_bounds__(step_threads, 2) step_kernel(const StepArgs args) {
  const Team grid{size_t{blockIdx.x} * blockDim.x + threadIdx.x, size_t{gridDim.x} * blockDim.x};
  if constexpr (sources == many)
    reduce_list<R, packs>(args, grid);
  else
    reduce_copy<R, sources, destinations, packs>(args, grid);
}

}  // namespace gyre::kernels
