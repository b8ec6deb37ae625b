// What ranks put into a call and what must come out: sums of small integers, the same in every order and exact in every type.
#pragma once
#include <cstddef>
#include <cstring>

#include "perf/peers/peer.h"

namespace gyre::peers {

inline float input(int rank, size_t i) { return static_cast<float>(rank + 1) + static_cast<float>(i % 7); }
inline float sum_of_inputs(int ranks, size_t i) {
  const int of_first_elements = ranks * (ranks + 1) / 2;
  return static_cast<float>(of_first_elements) + static_cast<float>(ranks) * static_cast<float>(i % 7);
}

inline void fill(const Call& call, int rank) {
  std::memset(call.data, 0, call.bytes());
  if (call.apart != nullptr) std::memset(call.apart, 0, call.bytes());
  const bool own_block = call.op == Op::all_gather;
  std::byte* from = own_block ? call.block_of(rank) : call.data;
  for (size_t i = 0; i < (own_block ? call.block : call.elements()); ++i) store(from, call.type, i, input(rank, i));
}

inline float expected(const Call& call, int rank, size_t i) {
  const size_t own = static_cast<size_t>(rank) * call.block;
  switch (call.op) {
    case Op::all_reduce:
      return sum_of_inputs(call.ranks, i);
    case Op::reduce_scatter:
      return sum_of_inputs(call.ranks, own + i);
    case Op::all_gather:
      return input(static_cast<int>(i / call.block), i % call.block);
    case Op::broadcast:
      return input(0, i);
    default:
      return input(static_cast<int>(i / call.block), own + i % call.block);
  }
}

/// Elements that are wrong after one call on known inputs, on the worst rank. Leaves zeros, so that in-place sums stay finite.
inline double wrong_elements(Peer& peer, const Call& call) {
  fill(call, peer.rank());
  peer.barrier();
  peer.run(call);
  const std::byte* result = peer.result(call);
  const size_t elements = call.op == Op::reduce_scatter ? call.block : call.elements();
  size_t wrong = 0;
  for (size_t i = 0; i < elements; ++i) wrong += load(result, call.type, i) == expected(call, peer.rank(), i) ? 0 : 1;
  peer.barrier();  // a rank's result may still be read by others
  std::memset(call.data, 0, call.bytes());
  return peer.maximum(static_cast<double>(wrong));
}

}  // namespace gyre::peers
