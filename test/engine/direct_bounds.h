// From which sizes on ranks of a host use which direct form, as the constants compiled in have it.
#pragma once
#include "topo/constants.h"

namespace gyre::test {

inline const topo::DirectBounds& direct_bounds(bool crowded) {
  static const topo::Constants constants = *topo::default_constants();
  static const topo::DirectBounds apart = *constants.machines.at("host").direct_bounds;
  static const topo::DirectBounds sharing = *constants.machines.at("host_crowded").direct_bounds;
  return crowded ? sharing : apart;
}

}  // namespace gyre::test
