// A kernel that stays for all steps of a collective, in small, against a thread that plays the network; and what can be wrong with such a
// kernel, to see whether the executor and the thread sanitizer find it.
#pragma once
#include <cstdint>
#include <thread>
#include <vector>

#include "test/simt/cuda.h"
// The keywords come first.
#include "kernels/reduce.h"

namespace gyre::simt {

enum class Fault { none, no_barrier_before, no_barrier_after, relaxed_flag, one_address };

struct SampleArgs {
  kernels::StepArgs step;  ///< the whole of it; its count is a block's part of a step
  int steps;
  const uint64_t* ready;  ///< so many steps' data has come
  uint64_t* posted;       ///< by block: of so many steps its part may leave
};

inline void post(uint64_t* flag, uint64_t value, Fault fault) {
  if (fault == Fault::relaxed_flag)
    __atomic_store_n(flag, value, __ATOMIC_RELAXED);
  else
    kernels::store_release(flag, value);
}

/// The step's part of this block.
inline kernels::StepArgs part_of(const SampleArgs& args, int step, unsigned block) {
  const size_t at = (static_cast<size_t>(step) * gridDim.x + block) * args.step.count;
  kernels::StepArgs part = args.step;
  part.sources[0] = static_cast<const float*>(part.sources[0]) + at;
  part.sources[1] = static_cast<const float*>(part.sources[1]) + at;
  part.destinations[0] = static_cast<float*>(part.destinations[0]) + at;
  return part;
}

template <Fault fault>
__global__ void stay(const SampleArgs args) {
  for (int step = 0; step < args.steps; ++step) {
    if (threadIdx.x == 0) {
      while (kernels::load_acquire(args.ready) <= static_cast<uint64_t>(step)) kernels::relax();
    }
    if constexpr (fault != Fault::no_barrier_before) __syncthreads();
    const auto part = part_of(args, step, fault == Fault::one_address ? 0 : blockIdx.x);
    kernels::reduce_copy<kernels::Plain<float, kernels::Sum>, 2, 1, 4>(part, {threadIdx.x, blockDim.x});
    if constexpr (fault != Fault::no_barrier_after) __syncthreads();
    if (threadIdx.x == 0) post(args.posted + blockIdx.x, static_cast<uint64_t>(step) + 1, fault);
  }
}

/// Runs it; true when the network saw the right sums, each as soon as it was told of them.
template <Fault fault>
bool sums_are_right(const Grid& grid) {
  constexpr int steps = 3;
  constexpr size_t part = 1037;  // packs, and some elements
  const size_t step_count = part * grid.blocks;
  std::vector<float> mine(steps * step_count), came(mine.size()), sums(mine.size());
  for (size_t i = 0; i < mine.size(); ++i) mine[i] = static_cast<float>(i);
  uint64_t ready = 0;
  std::vector<uint64_t> posted(grid.blocks);
  bool right = true;
  std::thread network([&] {
    for (size_t step = 0; step < steps; ++step) {
      const size_t first = step * step_count;
      for (size_t i = first; i < first + step_count; ++i) came[i] = static_cast<float>(i % 7);
      kernels::store_release(&ready, step + 1);
      for (const uint64_t& flag : posted) {
        while (kernels::load_acquire(&flag) <= step) std::this_thread::yield();
      }
      for (size_t i = first; i < first + step_count; ++i) right = right && sums[i] == static_cast<float>(i) + static_cast<float>(i % 7);
    }
  });
  const SampleArgs args{{{mine.data(), came.data(), nullptr}, {sums.data(), nullptr}, nullptr, part, 0}, steps, &ready, posted.data()};
  launch(grid, [&] { stay<fault>(args); });
  network.join();
  return right;
}

}  // namespace gyre::simt
