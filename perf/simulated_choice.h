// How good a choice by price is on the simulator, which plays every message that a price only counts.
#pragma once
#include <optional>
#include <utility>
#include <vector>

#include "base/result.h"
#include "topo/select.h"

namespace gyre::perf {

struct SimulatedChoice {
  double chosen = 0;  ///< seconds
  double best = 0;    ///< of all that were simulated
  const topo::Candidate* fastest = nullptr;
  size_t too_large = 0;  ///< candidates that could be faster and have more messages than can be simulated
  std::vector<std::pair<const topo::Candidate*, double>> times;  ///< seconds of all that can run; of those not simulated the price

  double regret() const { return chosen / best; }
};

/// Simulates the chosen candidate and, in the order of their prices, all that may be faster: no price is more than 1.4 of the simulated
/// time (test/topo/predict_test.cpp). The choice has one that can run. Nothing: that one is too large to be simulated.
Result<std::optional<SimulatedChoice>> simulated(const topo::Query&, const topo::Choice&, topo::Profiles&);

}  // namespace gyre::perf
