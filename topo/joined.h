// What things cost where one machine of the constants has what is inside hosts, and another what joins these.
#pragma once
#include <algorithm>
#include <iterator>
#include <utility>

#include "topo/cost.h"

namespace gyre::topo {

/// As `hosts`, but between these: `network`'s link, and its times of jobs on several, none of which were measured over another.
inline Costs joined(Costs hosts, const Costs& network) {
  const auto on_several = [](const Measured& m) { return m.per_node > 0; };
  hosts.link[between] = network.link[between];
  std::erase_if(hosts.measured, on_several);
  std::ranges::copy_if(network.measured, std::back_inserter(hosts.measured), on_several);
  return hosts;
}

}  // namespace gyre::topo
