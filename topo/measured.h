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

/// Seconds for blocks of so many bytes: on a straight line between the two sizes beside it, which is what more bytes cost; those of the
/// least size below it, and of the largest, by bytes, above. Nothing: the algorithm was not measured. Only sums, products and quotients
/// of doubles, as prices.
std::optional<double> measured_seconds(std::span<const Measured>, std::string_view family, const Shape&, int per_node, double block_bytes);

}  // namespace gyre::topo
