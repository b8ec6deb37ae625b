// The kernels that stay. Written for nvcc; test/simt runs them on the host.
#pragma once
#include "kernels/reduce.h"
#include "kernels/stay.h"

namespace gyre::kernels {

/// How many packs of each source a thread loads before it uses the first. By one, eight blocks have 128 KiB under way, which is more than a
/// network brings; and a kernel of many bodies is compiled in half the time.
inline constexpr int stay_packs = 1;

/// One source, to one destination or both.
template <class R>
GYRE_DEVICE void do_alone(const StepArgs& step, Team team) {
  if (step.destinations[1] != nullptr)
    reduce_copy<R, 1, 2, stay_packs>(step, team);
  else
    reduce_copy<R, 1, 1, stay_packs>(step, team);
}

template <class R>
GYRE_DEVICE void do_reduce(const StepArgs& step, Team team) {
  if (step.sources[2] != nullptr)
    reduce_copy<R, 3, 1, stay_packs>(step, team);
  else if (step.destinations[1] != nullptr)
    reduce_copy<R, 2, 2, stay_packs>(step, team);
  else
    reduce_copy<R, 2, 1, stay_packs>(step, team);
}

/// Each block waits for itself, and says for itself how far it is: blocks never wait for each other. Who opens the gate sees to it that an
/// item does not begin before those are ended of which it reads or overwrites something. `work`: called with an item and a team.
template <class Work>
GYRE_DEVICE void do_items(const StayArgs& args, const Work& work) {
  const Team team{size_t{blockIdx.x} * blockDim.x + threadIdx.x, size_t{gridDim.x} * blockDim.x};
  for (uint64_t ticket = args.first; ticket < args.end; ++ticket) {
    if (threadIdx.x == 0) {
      while (load_acquire(args.gate) <= ticket) relax();
    }
    __syncthreads();
    const StayItem item = args.items[ticket & (args.ring - 1)];  // written before the gate opened, so all threads read the same
    if (item.ticket != ticket) return;
    work(item, team);
    __syncthreads();
    if (threadIdx.x == 0) store_release(&args.ended[blockIdx.x].value, ticket + 1);
  }
}

template <class R, class Bits, bool multiplies>
__global__ void __launch_bounds__(step_threads, 1) stay_kernel(const StayArgs args) {
  do_items(args, [](const StayItem& item, Team team) {
    if (item.what == StayItem::What::copy) {
      do_alone<Copy<Bits>>(item.step, team);
    } else if constexpr (multiplies) {
      if (item.what == StayItem::What::multiply)
        do_alone<R>(item.step, team);
      else
        do_reduce<R>(item.step, team);
    } else {
      do_reduce<R>(item.step, team);
    }
  });
}

}  // namespace gyre::kernels
