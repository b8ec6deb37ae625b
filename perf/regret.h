// How much time a choice costs: that of the chosen over that of the best measured, at each size.
#pragma once
#include <span>
#include <string>
#include <vector>

#include "perf/samples.h"
#include "topo/constants.h"

namespace gyre::perf {

/// One size on one machine.
struct Regret {
  Collective collective = Collective::all_reduce;
  int ranks = 1;
  int nodes = 1;
  std::string transport;
  size_t bytes = 0;
  std::string best;
  std::string chosen;
  std::string by_rule;  ///< what the published rule of thumb takes, of the same prices
  double best_us = 0;
  double best_spread = 1;   ///< the slowest of the best's rounds over its median
  double chosen_ratio = 1;  ///< the regret, 1 or more
  double by_rule_ratio = 1;
};

/// In the order of Sample::call(). Error: constants lack the samples' machine, or a choice was not measured.
Result<std::vector<Regret>> regrets(std::span<const Sample>, const topo::Constants&);

}  // namespace gyre::perf
