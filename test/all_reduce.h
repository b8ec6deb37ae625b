// The schedule that most tests want: a family's all-reduce.
#pragma once
#include <stdexcept>

#include "topo/algorithms.h"

namespace gyre::test {

inline schedule::Schedule all_reduce(std::string_view family, int ranks, uint32_t channels = 1) {
  auto made = topo::make(family, {Collective::all_reduce, ranks, channels, 0, {}});
  if (!made) throw std::runtime_error(made.error().what);
  return *std::move(made);
}

}  // namespace gyre::test
