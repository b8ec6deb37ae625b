// Which family runs a call. A pure function of what all ranks know, so that they choose alike.
#pragma once
#include <cstddef>
#include <string_view>

namespace gyre::topo {

/// The family for an all-reduce of `bytes` between `ranks`.
std::string_view choose(size_t bytes, int ranks);

}  // namespace gyre::topo
