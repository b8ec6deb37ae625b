// The one loop of all step kernels: reduce_copy, over (reduction, number of sources, of destinations, packs in flight). Whole packs of
// 16 bytes where all pointers are equally far from a multiple of that, after what lies before the first one; all else by element. A warp's
// threads are neighbours, its packs 512 bytes apart; all loads of a batch are issued before the first is used.
#pragma once
#include "kernels/reduction.h"
#include "kernels/step.h"

namespace gyre::kernels {

/// The threads that share a step, a multiple of a warp, and which of them this is.
struct Team {
  size_t thread, threads;
};

/// A step's pointers, to units (packs or elements) and some bytes further on.
template <class Unit>
struct Operands {
  const StepArgs& args;
  size_t bytes;

  GYRE_DEVICE const Unit* source(int i) const { return at(args.sources[i]); }
  GYRE_DEVICE Unit* destination(int i) const { return reinterpret_cast<Unit*>(static_cast<std::byte*>(args.destinations[i]) + bytes); }

 private:
  GYRE_DEVICE const Unit* at(const void* pointer) const {
    return reinterpret_cast<const Unit*>(static_cast<const std::byte*>(pointer) + bytes);
  }
};

template <int n, class Unit>
GYRE_DEVICE void load_batch(Unit (&units)[n], const Unit* from) {
  GYRE_UNROLL
  for (int i = 0; i < n; ++i) units[i] = load_stream(from + i * warp_threads);
}

template <int sources, int n, class R, class Unit>
GYRE_DEVICE void reduce_fixed(Unit (&result)[n], const R& reduction, const Operands<Unit>& operands, size_t first) {
  Unit units[sources][n];
  GYRE_UNROLL
  for (int s = 0; s < sources; ++s) load_batch(units[s], operands.source(s) + first);
  GYRE_UNROLL
  for (int i = 0; i < n; ++i) {
    if constexpr (sources == 1)
      result[i] = reduction.one(units[0][i]);
    else
      result[i] = reduction.two(units[0][i], units[1][i]);
    GYRE_UNROLL
    for (int s = 2; s < sources; ++s) result[i] = reduction.more(result[i], units[s][i]);
    if constexpr (sources > 1) result[i] = reduction.last(result[i]);
  }
}

/// n units, those of a warp's other threads between them, from `first` on.
template <int sources, int destinations, int n, class R, class Unit>
GYRE_DEVICE void reduce_batch(const R& reduction, const Operands<Unit>& operands, size_t first) {
  Unit result[n];
  reduce_fixed<sources, n>(result, reduction, operands, first);
  GYRE_UNROLL
  for (int d = 0; d < destinations; ++d) {
    GYRE_UNROLL
    for (int i = 0; i < n; ++i) store_stream(operands.destination(d) + first + i * warp_threads, result[i]);
  }
}

/// How many elements come before the first whole pack, and how many packs there are; none where pointers differ.
struct Split {
  size_t head, packs;
};

/// Bytes since the last multiple of a pack.
GYRE_DEVICE size_t pack_offset(const void* pointer) { return reinterpret_cast<uintptr_t>(pointer) % sizeof(Pack); }

/// `same`: all pointers have that offset.
template <class T>
GYRE_DEVICE Split split_at(size_t offset, bool same, size_t count) {
  const size_t head = (sizeof(Pack) - offset) % sizeof(Pack) / sizeof(T);
  if (!same || head > count) return {0, 0};
  return {head, (count - head) / (sizeof(Pack) / sizeof(T))};
}

template <class T, int sources, int destinations>
GYRE_DEVICE Split split(const StepArgs& args) {
  const size_t common = pack_offset(args.destinations[0]);
  bool same = destinations < 2 || pack_offset(args.destinations[destinations - 1]) == common;
  GYRE_UNROLL
  for (int s = 0; s < sources; ++s) same = same && pack_offset(args.sources[s]) == common;
  return split_at<T>(common, same, args.count);
}

/// Of a step's pointers, or a list's (reduce_list.h), units 0 to count: whole batches, which lie together for a warp, as do those of
/// neighbours; what is left goes round by single ones.
template <int sources, int destinations, int n, class R, class AnyOperands>
GYRE_DEVICE void reduce_units(const R& reduction, const AnyOperands& operands, size_t count, Team team) {
  size_t whole = 0;
  if constexpr (n > 1) {
    constexpr size_t batch = size_t{warp_threads} * n;
    whole = count - count % batch;
    const size_t first = team.thread / warp_threads * batch + team.thread % warp_threads;
    GYRE_ROLLED
    for (size_t i = first; i < whole; i += team.threads * n) reduce_batch<sources, destinations, n>(reduction, operands, i);
  }
  GYRE_ROLLED
  for (size_t i = whole + team.thread; i < count; i += team.threads) reduce_batch<sources, destinations, 1>(reduction, operands, i);
}

/// Both ends, of less than a pack each, are for the first warp.
template <int sources, int destinations, class R, class AnyOperands>
GYRE_DEVICE void reduce_ends(const OnElements<R>& reduction, const AnyOperands& elements, Split parts, size_t count, Team team) {
  const size_t middle = parts.packs * (sizeof(Pack) / sizeof(typename R::Element));
  if (team.thread < count - middle)
    reduce_batch<sources, destinations, 1>(reduction, elements, team.thread < parts.head ? team.thread : team.thread + middle);
}

/// A thread's share; `packs` is how many of each source it loads before it uses the first.
template <class R, int sources, int destinations, int packs>
GYRE_DEVICE void reduce_copy(const StepArgs& args, Team team) {
  using T = typename R::Element;
  const OnElements<R> on_elements{R(args.scalar)};
  const Operands<T> elements{args, 0};
  const Split parts = split<T, sources, destinations>(args);
  if (parts.packs == 0) return reduce_units<sources, destinations, packs>(on_elements, elements, args.count, team);

  const OnPacks<R> on_packs{R(args.scalar)};
  reduce_units<sources, destinations, packs>(on_packs, Operands<Pack>{args, parts.head * sizeof(T)}, parts.packs, team);
  reduce_ends<sources, destinations>(on_elements, elements, parts, args.count, team);
}

}  // namespace gyre::kernels
