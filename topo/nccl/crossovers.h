// The sizes at which another algorithm or protocol becomes the best, by any prediction.
#pragma once
#include <functional>
#include <optional>
#include <vector>

#include "topo/nccl/constants.h"

namespace gyre::topo::nccl {

/// A prediction; nothing: there is no such.
using Seconds = std::function<std::optional<double>(const Entry&, uint64_t bytes)>;

struct Sizes {
  uint64_t least = 1, most = uint64_t{1} << 33;  ///< bytes
};

/// The entry with the least time, the first of equals; nothing: there is none at all.
std::optional<Entry> best(const Seconds&, uint64_t bytes);

struct Change {
  uint64_t from = 0;  ///< bytes, to where the next one begins
  Entry best;
};
/// Every change of the best. Predictions are looked at in steps of an eighth of a power of two and between two of these halved, so what
/// is best only within one such step can be missed.
std::vector<Change> changes(const Seconds&, const Sizes& = {});

/// The size from which on the second is faster than the first, up to the largest; nothing: it is not at the largest, or one does not exist.
/// The least size: it always is.
std::optional<uint64_t> crossover(const Seconds&, const Entry& first, const Entry& second, const Sizes& = {});

}  // namespace gyre::topo::nccl
