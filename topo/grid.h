// Ways to see a number of ranks as a grid, for families that work along dimensions.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

namespace gyre::topo {

/// Ascending; empty for 1. The grid with the fewest hops where a dimension is one exchange between all of its ranks.
std::vector<int> prime_factors(int ranks);
/// The two extents that are nearest to each other, the larger first; one where the number is prime, none for 1.
std::vector<int> most_square(int ranks);

/// How the ranks of a line deal with each other: each with the next, or each with all.
enum class Exchange : uint8_t { ring, direct };

struct Dimension {
  int extent = 1;
  Exchange exchange = Exchange::ring;
};
std::vector<Dimension> along(const std::vector<int>& extents, Exchange);

/// What a family goes along, as bucket.h writes it; nothing: it goes another way.
using Lines = std::optional<std::vector<Dimension>>;

}  // namespace gyre::topo
