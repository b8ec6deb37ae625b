// The order in which rings pass the hosts of a job.
#pragma once
#include <vector>

#include "schedule/relayed.h"

namespace gyre::topo {

/// By number, 0 first, but so that no two that are apart follow each other, nor the first the last; by number where there is no such order,
/// or none is found soon.
std::vector<int> host_order(int hosts, const schedule::RankPairs& apart);

}  // namespace gyre::topo
