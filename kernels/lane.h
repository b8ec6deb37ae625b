// Lanes: what one instruction of a GPU computes. A lane is two neighbours of a small float, four of an 8-bit integer, of all other types
// one element. An element by itself takes a lane, too, so that each type's arithmetic is written once: in lane_gpu.h with the GPU's
// instructions, in lane_host.h with the functors of op.h and avg.h on each element. Both have
//     combine(op, a, b)     a op b for op.h's functors
//     fused(x, s, r)        x * s + r, rounded once; 8-bit floats: twice, as NCCL has it
#pragma once
#include <cstring>

#include "kernels/mem.h"
#include "kernels/op.h"

namespace gyre::kernels {

template <class T>
inline constexpr int lane_elements = Small<T> ? 2 : (sizeof(T) == 1 ? 4 : 1);

template <class T>
struct alignas(lane_elements<T> * sizeof(T)) Lane {
  static constexpr int count = lane_elements<T>;
  T elements[count];
};

/// An element as a lane, whose others do not matter.
template <class T>
GYRE_DEVICE Lane<T> lane_of(T element) {
  Lane<T> lane{};
  lane.elements[0] = element;
  return lane;
}

/// A lane of elements with these bits, the lowest of them.
template <class T>
GYRE_DEVICE Lane<T> lane_with_bits(uint64_t bits) {
  Lane<T> lane;
  GYRE_UNROLL
  for (T& element : lane.elements) memcpy(&element, &bits, sizeof(element));
  return lane;
}

/// The lanes of a pack.
template <class T>
struct Lanes {
  static constexpr int count = sizeof(Pack) / sizeof(Lane<T>);
  Lane<T> lanes[count];

  GYRE_DEVICE explicit Lanes(const Pack& pack) { memcpy(lanes, &pack, sizeof(pack)); }
  GYRE_DEVICE Pack pack() const {
    Pack pack;
    memcpy(&pack, lanes, sizeof(pack));
    return pack;
  }
};

}  // namespace gyre::kernels
