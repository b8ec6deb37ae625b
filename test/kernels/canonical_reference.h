// What an ordered reduction must give, once more and slowly: a list of numbers that is halved until one is left. Shares nothing with
// kernels/ or schedule/canonical.h.
#pragma once
#include <bit>
#include <vector>

#include "kernels/reduce_host.h"
#include "test/kernels/patterns.h"

namespace gyre::test {

inline bool small_float(DataType type) { return !is_integer(type) && size_of(type) < 4; }
/// In what partial sums are made.
inline DataType partial_type(DataType type) { return small_float(type) ? DataType::float32 : type; }

/// A rank's part as a partial sum, multiplied by a scalar of the type where there is one.
inline uint64_t canonical_part(DataType type, uint64_t part, bool multiplied, double real, uint64_t whole) {
  if (is_integer(type)) return multiplied ? (part * whole) & pattern_mask(type) : part;
  const double value = float_value(type, part);
  if (type == DataType::float64) return multiplied ? pattern_of(value * real) : part;
  const auto narrow = static_cast<float>(value);
  return pattern_of(multiplied ? narrow * static_cast<float>(real) : narrow);
}

/// One element of all ranks. `scalars`: bits of premul_sum's, by rank.
inline uint64_t canonical_reference(DataType type, ReduceOp op, const Patterns& parts, const Patterns& scalars = {}) {
  const size_t n = parts.size();
  const bool averages = op == ReduceOp::avg && !is_integer(type);
  const bool multiplied = averages || op == ReduceOp::premul_sum;
  if (n == 1 && !multiplied) return parts[0];
  Patterns sums;
  for (size_t rank = 0; rank < n; ++rank) {
    double real = kernels::avg_scalar(type, static_cast<int>(n));
    uint64_t whole = 1;
    if (op == ReduceOp::premul_sum) {
      whole = scalars[rank];
      if (!is_integer(type)) real = float_value(type, whole);
    }
    sums.push_back(canonical_part(type, parts[rank], multiplied, real, whole));
  }
  const bool sum_only = op == ReduceOp::avg || op == ReduceOp::premul_sum;
  const auto reduced = [&](uint64_t a, uint64_t b) { return reference_combine(partial_type(type), sum_only ? ReduceOp::sum : op, a, b); };
  for (size_t surplus = n - std::bit_floor(n), i = 0; i < surplus; ++i) {
    const auto at = static_cast<std::ptrdiff_t>(i);
    sums[i] = reduced(sums[i], sums[i + 1]);
    sums.erase(sums.begin() + at + 1);
  }
  while (sums.size() > 1) {
    for (size_t i = 0; i < sums.size() / 2; ++i) sums[i] = reduced(sums[2 * i], sums[2 * i + 1]);
    sums.resize(sums.size() / 2);
  }
  if (op == ReduceOp::avg && is_integer(type)) return reference_divide(type, sums[0], n);
  return small_float(type) ? slow(type).nearest(float_value(DataType::float32, sums[0])) : sums[0];
}

/// A type's elements that hurt, as far as their NaNs are one: special ones, ones of similar size, and any.
inline uint64_t drawn_pattern(std::mt19937_64& random, DataType type, const Patterns& special) {
  const uint64_t any = random();
  const unsigned kind = static_cast<unsigned>(any >> 60);
  if (kind == 0) return special[any % special.size()];
  if (kind < 4 || is_integer(type)) return any & pattern_mask(type);
  return any & (pattern_mask(type) ^ (pattern_mask(type) >> 1) ^ (pattern_mask(type) >> 2));  // below 2, of either sign
}

}  // namespace gyre::test
