// CUDA C++ for a host's compiler: the few of its words that gyre's kernels have. Included before any kernel.
#pragma once
#include "test/simt/executor.h"

#define __global__
#define __launch_bounds__(...)
#define __grid_constant__
#define __shared__ static thread_local  // a block is a thread of the host
#define threadIdx (::gyre::simt::thread_index())
#define blockIdx (::gyre::simt::block_index())
#define blockDim (::gyre::simt::threads_of_block())
#define gridDim (::gyre::simt::blocks_of_grid())

inline void __syncthreads() { ::gyre::simt::barrier(); }
inline int __syncthreads_or(int predicate) { return ::gyre::simt::barrier_or(predicate != 0) ? 1 : 0; }
