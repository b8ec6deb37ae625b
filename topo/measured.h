// Times of whole calls, as measured on a machine, or simulated for one that is not here. Prices are near them, but algorithms are often
// nearer to each other; so where there are times the choice goes by these, and by prices where there are none.
#pragma once
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/types.h"
#include "topo/shape.h"

namespace gyre::topo {

class JsonObject;

/// Of one algorithm, on one channel.
struct MeasuredTimes {
  std::string family;
  std::vector<int> grid;
  std::vector<double> seconds;  ///< by Measured::bytes
};
/// Of a collective between so many ranks.
struct Measured {
  Collective collective = Collective::all_reduce;
  int ranks = 1;
  int per_node = 0;           ///< as Placement's; 0: all on one
  std::vector<double> bytes;  ///< of a block, rising
  std::vector<MeasuredTimes> times;
};

/// Of a file of constants. Error: what is wrong, with the key.
Result<std::vector<Measured>> parse_measured(const JsonObject& machine, const std::string& key);

/// The two sizes beside another, and which part of the way from the first to the second it is; beyond the least and the largest both are
/// that one.
struct MeasuredBeside {
  double bytes[2] = {};
  double seconds[2] = {};
  double part = 0;
};
/// Nothing: the algorithm was not measured.
std::optional<MeasuredBeside> measured_beside(std::span<const Measured>, std::string_view family, const Shape&, int per_node,
                                              double block_bytes);

}  // namespace gyre::topo
