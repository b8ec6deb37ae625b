// Runs CUDA kernels on the host, without a GPU and from the same sources: a block is an OS thread, its CUDA threads are fibers, which go on
// until they wait at a barrier, relax or end. Looser than a GPU, where a warp's threads go together: what leans on that fails here. The
// thread sanitizer sees every CUDA thread as a thread, and barriers, launches and atomic flags as all the order there is: so it finds a
// missing barrier, release or acquire even where the data came out right. What is not modelled: warps' shuffles and votes, shared memory,
// scopes.
#pragma once
#include <cstdint>
#include <functional>
#include <stdexcept>

namespace gyre::simt {

struct Grid {
  unsigned blocks = 1;
  unsigned threads = 32;  ///< of a block
  uint64_t seed = 0;      ///< of the order in which a block's threads go on; 0: in turn
};

/// Not all of a block's threads came to a barrier, and none of the others will: which, and how many.
struct Deadlock : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Calls `kernel` in each of the grid's threads, and returns when all have ended. From any thread, also from several at once. A kernel
/// must not throw.
void launch(const Grid& grid, const std::function<void()>& kernel);

// What the calling CUDA thread is.
struct Index {
  unsigned x;
};
Index thread_index();
Index block_index();
Index threads_of_block();
Index blocks_of_grid();

/// __syncthreads(): all of the block's threads, or it is a deadlock.
void barrier();
/// The same, __syncthreads_or(): whether any of them says so.
bool barrier_or(bool predicate);
/// The block's other threads go on first, and so do other OS threads.
void let_others_run();

/// So many threads of kernels have ended all that the process has on a GPU (fail_kernel(), kernels/mem.h).
int failed_kernels();

}  // namespace gyre::simt
