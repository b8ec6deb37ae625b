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

GYRE_DEVICE void say_begun(ReplayDoor* door, uint64_t id) {
  const uint64_t number = add_to(&door->starts_made, 1);
  ReplayDoor::Start* const start = &door->starts[number % ReplayDoor::ring];
  start->id = id;
  store_release(&start->number, number + 1);
}

/// By one thread of a block.
GYRE_DEVICE void begin_replay(const StayArgs& args, unsigned block) {
  ReplaySlot* const slot = args.slot;
  uint64_t turn = or_into(&slot->turns[block], 1);
  for (; turn % 2 != 0; turn = or_into(&slot->turns[block], 1)) relax();
  const uint64_t launch = turn / 2 + 1;
  if (block == 0) say_begun(args.door, args.id);
  const auto waits = [&] { return static_cast<int64_t>(load_acquire(&slot->assigned) - launch) < 0; };
  uint64_t state = ReplayDoor::open;
  while (waits() && state == ReplayDoor::open) {
    relax();
    state = load_acquire(&args.door->state);
  }
  const bool goes = !waits();
  if (!goes && state == ReplayDoor::ended) fail_kernel();
  store_release(&slot->granted[block], goes ? load_acquire(&slot->first) : ReplaySlot::nothing);
}

/// The word is unlocked as one operation, since others try to lock it meanwhile.
GYRE_DEVICE void end_replay(ReplaySlot* slot, unsigned block) {
  store_release(&slot->left[block], load_acquire(&slot->turns[block]) / 2 + 1);
  add_to(&slot->turns[block], 1);
}

/// Each block waits for itself, and says for itself how far it is: blocks never wait for each other. Who opens the gate sees to it that an
/// item does not begin before those are ended of which it reads or overwrites something. `work`: called with an item and a team.
template <class Work>
GYRE_DEVICE void do_items(const StayArgs& args, const Work& work) {
  const Team team{size_t{blockIdx.x} * blockDim.x + threadIdx.x, size_t{gridDim.x} * blockDim.x};
  uint64_t first = args.first, end = args.end;
  if (args.slot != nullptr) {
    if (threadIdx.x == 0) begin_replay(args, blockIdx.x);
    __syncthreads();
    first = load_acquire(&args.slot->granted[blockIdx.x]);
    end = first != ReplaySlot::nothing ? first + args.end : first;
  } else if (args.door != nullptr && threadIdx.x == 0 && blockIdx.x == 0) {
    say_begun(args.door, args.id);
  }
  for (uint64_t ticket = first; ticket < end; ++ticket) {
    if (threadIdx.x == 0) {
      while (load_acquire(args.gate) <= ticket) relax();
    }
    __syncthreads();
    const StayItem item = args.items[ticket & (args.ring - 1)];  // written before the gate opened, so all threads read the same
    if (item.ticket != ticket) {                                 // half of it may be done, in a communicator that nobody can ask any more
      if (args.slot != nullptr && load_acquire(&args.door->state) == ReplayDoor::ended) fail_kernel();
      break;
    }
    work(item, team);
    __syncthreads();
    if (threadIdx.x == 0) store_release(&args.ended[blockIdx.x].value, ticket + 1);
  }
  if (args.slot == nullptr) return;
  __syncthreads();  // all have read what was granted
  if (threadIdx.x == 0) end_replay(args.slot, blockIdx.x);
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
