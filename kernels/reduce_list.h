// reduce_list: what reduce_copy is for a kernel whose pointers are in a list, and known only when it may begin. It has as many sources and
// destinations as that says, and holds one batch of a source beside the sum.
#pragma once
#include "kernels/reduce.h"

namespace gyre::kernels {

/// For a block's threads, who all call it: the list lies in the host's memory, which is far.
GYRE_DEVICE void load_list(StepList& to, const StepList* from) {
  const unsigned i = threadIdx.x;
  if (i < StepList::most) to.source[i] = from->source[i], to.scalar[i] = from->scalar[i], to.destination[i] = from->destination[i];
  if (i == 0) {
    to.ticket = load_acquire(&from->ticket);  // which may be taken back at any time
    to.sources = from->sources, to.destinations = from->destinations, to.own = from->own;
  }
  __syncthreads();
}

/// A list's pointers, as Operands has them.
template <class Unit>
struct Listed {
  const StepList& list;
  size_t bytes;

  GYRE_DEVICE const Unit* source(unsigned s) const {
    return reinterpret_cast<const Unit*>(static_cast<const std::byte*>(list.source[s]) + bytes);
  }
  GYRE_DEVICE Unit* destination(unsigned d) const { return reinterpret_cast<Unit*>(static_cast<std::byte*>(list.destination[d]) + bytes); }
};

/// Each part is multiplied by its own scalar, where parts are.
template <int n, class R, class Unit>
GYRE_DEVICE void add_part(Unit (&sum)[n], const Unit (&part)[n], const R& reduction, const StepList& list, unsigned s) {
  using Lanes = decltype(R::lanes);
  if constexpr (Lanes::multiplies) {
    const R own{Lanes(list.scalar[s])};
    GYRE_UNROLL
    for (int i = 0; i < n; ++i) sum[i] = s == list.own ? own.two(part[i], sum[i]) : reduction.more(sum[i], own.one(part[i]));
  } else {
    GYRE_UNROLL
    for (int i = 0; i < n; ++i) sum[i] = reduction.more(sum[i], part[i]);
  }
}

/// `reduction` has the scalar of the first source.
template <int sources, int destinations, int n, class R, class Unit>
GYRE_DEVICE void reduce_batch(const R& reduction, const Listed<Unit>& operands, size_t first) {
  Unit sum[n], part[n];
  load_batch(sum, operands.source(0) + first);
  GYRE_UNROLL
  for (int i = 0; i < n; ++i) sum[i] = reduction.one(sum[i]);
  GYRE_ROLLED
  for (unsigned s = 1; s < operands.list.sources; ++s) {
    load_batch(part, operands.source(s) + first);
    add_part(sum, part, reduction, operands.list, s);
  }
  GYRE_UNROLL
  for (int i = 0; i < n; ++i) sum[i] = reduction.last(sum[i]);
  GYRE_ROLLED
  for (unsigned d = 0; d < operands.list.destinations; ++d) {
    GYRE_UNROLL
    for (int i = 0; i < n; ++i) store_stream(operands.destination(d) + first + i * warp_threads, sum[i]);
  }
}

template <class T>
GYRE_DEVICE Split split(const StepList& list, size_t count) {
  const size_t common = pack_offset(list.destination[0]);
  bool same = true;
  for (unsigned s = 0; s < list.sources; ++s) same = same && pack_offset(list.source[s]) == common;
  for (unsigned d = 1; d < list.destinations; ++d) same = same && pack_offset(list.destination[d]) == common;
  return split_at<T>(common, same, count);
}

/// A thread's share, by all threads of a block.
template <class R, int packs>
GYRE_DEVICE void reduce_list(const StepArgs& args, Team team) {
  using T = typename R::Element;
  __shared__ StepList list;
  load_list(list, args.list);
  if (list.ticket != args.scalar) return;
  const R reduction(list.scalar[0]);
  const OnElements<R> on_elements{reduction};
  const Listed<T> elements{list, 0};
  const Split parts = split<T>(list, args.count);
  if (parts.packs == 0) return reduce_units<many, many, packs>(on_elements, elements, args.count, team);

  reduce_units<many, many, packs>(OnPacks<R>{reduction}, Listed<Pack>{list, parts.head * sizeof(T)}, parts.packs, team);
  reduce_ends<many, many>(on_elements, elements, parts, args.count, team);
}

}  // namespace gyre::kernels
