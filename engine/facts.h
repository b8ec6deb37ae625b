// What ranks tell each other before they connect.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "base/config.h"
#include "transport/bootstrap.h"

namespace gyre::engine {

struct Facts {
  std::string version;
  std::string host;                   ///< ranks of equal text share memory and a network
  std::vector<uint64_t> processors;   ///< that it may run on, a bit each
  std::vector<std::string> backends;  ///< transports that can be opened here, the best first
  std::string transport;
  size_t slot_bytes = 0;
  size_t slots = 0;
  size_t channels = 0;
};

/// Everybody's facts by rank. Error: ranks differ in a fact that must be equal; says which rank in what.
Result<std::vector<Facts>> exchange_facts(transport::Bootstrap&, const Config&);
/// True when this rank's host has more ranks than processors for them.
bool crowded(const std::vector<Facts>&, Rank);

}  // namespace gyre::engine
