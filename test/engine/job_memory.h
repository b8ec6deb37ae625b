// The buffers of all ranks of a collective, and what must be in them afterwards: NCCL's definitions written down once more, without
// schedule/layout.h. Inputs are numbers drawn from the rank and the element.
#pragma once
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "engine/arguments.h"

namespace gyre::test {

inline uint64_t drawn(Rank rank, size_t element) {
  uint64_t x = (element + 1) * 0x9e3779b97f4a7c15 ^ (static_cast<uint64_t>(rank) + 7) * 0xd1342543de82ef95;
  x = (x ^ x >> 29) * 0xbf58476d1ce4e5b9;
  return x ^ x >> 32;
}
/// What a rank has as element of its input: any integer, or a float in [-1, 1) whose sums are rounded.
template <class T>
T drawn_as(Rank rank, size_t element) {
  const uint64_t x = drawn(rank, element);
  if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(x);
  } else {
    return static_cast<T>(static_cast<double>(static_cast<int32_t>(x)) / 2147483648.0);
  }
}

template <class T, class Allocator = std::allocator<T>>  // int32_t or float
class JobMemory {
 public:
  JobMemory(const engine::Call& call, int ranks, bool in_place) : call_(call), ranks_(ranks), in_place_(in_place) {
    for (Rank r = 0; r < ranks; ++r) {
      const size_t in = reads(r) ? inputs() : 0;
      const size_t out = writes(r) ? outputs() : 0;
      memory_.emplace_back(guard + (in_place ? std::max(in, out) : in + out) + guard, canary());
      for (size_t i = 0; i < in; ++i) input(r)[i] = drawn_as<T>(r, i);
    }
    before_ = memory_;
  }

  /// What the rank passes; null where it has no such buffer.
  engine::Buffers buffers(Rank r) { return {reads(r) ? input(r) : nullptr, writes(r) ? output(r) : nullptr}; }
  /// All outputs, as bits.
  std::string bits() {
    std::string all;
    for (Rank r = 0; r < ranks_; ++r) {
      if (writes(r)) all.append(reinterpret_cast<const char*>(output(r)), outputs() * sizeof(T));
    }
    return all;
  }
  /// Empty: everything is as it must be.
  std::string wrong() {
    for (Rank r = 0; r < ranks_; ++r) {
      if (std::string what = wrong(r); !what.empty()) return what;
    }
    return {};
  }
  std::string wrong(Rank r) {
    for (size_t i = 0; writes(r) && i < outputs(); ++i) {
      if (!right(r, i, output(r)[i])) return fmt::format("rank {} element {} is {}", r, i, output(r)[i]);
    }
    // All that is not output is as before.
    const auto& now = memory_[static_cast<size_t>(r)];
    const size_t from = static_cast<size_t>(output(r) - now.data());
    for (size_t i = 0; i < now.size(); ++i) {
      const bool written = writes(r) && i >= from && i < from + outputs();
      if (!written && std::memcmp(&now[i], &before_[static_cast<size_t>(r)][i], sizeof(T)) != 0) {
        return fmt::format("rank {} has written to place {} of its memory", r, i);
      }
    }
    return {};
  }

 private:
  static constexpr size_t guard = 16;
  static T canary() { return static_cast<T>(-77); }

  bool is(Collective c) const { return call_.collective == c; }
  bool reads(Rank r) const { return (!is(Collective::broadcast) && !is(Collective::scatter)) || r == call_.root; }
  bool writes(Rank r) const { return (!is(Collective::reduce) && !is(Collective::gather)) || r == call_.root; }
  size_t all_blocks() const { return call_.count * static_cast<size_t>(ranks_); }
  size_t inputs() const {
    return is(Collective::reduce_scatter) || is(Collective::all_to_all) || is(Collective::scatter) ? all_blocks() : call_.count;
  }
  size_t outputs() const {
    return is(Collective::all_gather) || is(Collective::all_to_all) || is(Collective::gather) ? all_blocks() : call_.count;
  }
  T* input(Rank r) {
    T* base = memory_[static_cast<size_t>(r)].data() + guard;
    const bool inside = is(Collective::all_gather) || is(Collective::gather);
    return in_place_ && writes(r) && inside ? base + static_cast<size_t>(r) * call_.count : base;
  }
  T* output(Rank r) {
    T* base = memory_[static_cast<size_t>(r)].data() + guard;
    if (!in_place_) return reads(r) ? base + inputs() : base;
    const bool inside = is(Collective::reduce_scatter) || is(Collective::scatter);
    return reads(r) && inside ? base + static_cast<size_t>(r) * call_.count : base;
  }

  bool right(Rank r, size_t i, T got) const {
    const size_t block = call_.count == 0 ? 0 : i / call_.count;
    const size_t within = call_.count == 0 ? 0 : i % call_.count;
    const size_t own = static_cast<size_t>(r) * call_.count;
    switch (call_.collective) {
      case Collective::all_gather:
      case Collective::gather:
        return got == drawn_as<T>(static_cast<Rank>(block), within);
      case Collective::broadcast:
        return got == drawn_as<T>(call_.root, i);
      case Collective::all_to_all:
        return got == drawn_as<T>(static_cast<Rank>(block), own + within);
      case Collective::scatter:
        return got == drawn_as<T>(call_.root, own + i);
      case Collective::reduce_scatter:
        return reduced(own + i, got);
      default:
        return reduced(i, got);
    }
  }
  bool reduced(size_t element, T got) const {
    if constexpr (std::is_integral_v<T>) {
      return got == exact(element);
    } else {
      double sum = 0;
      double absolute = 0;
      for (Rank r = 0; r < ranks_; ++r) {
        sum += static_cast<double>(drawn_as<T>(r, element));
        absolute += std::fabs(static_cast<double>(drawn_as<T>(r, element)));
      }
      // Every addition rounds once, and no partial sum is larger than the sum of absolute values; an average also rounds 1/n and each part.
      const double scale = call_.op == ReduceOp::avg ? 1.0 / ranks_ : 1;
      const double roundings = ranks_ - 1 + (call_.op == ReduceOp::avg ? 2 : 0);
      return std::fabs(static_cast<double>(got) - sum * scale) <= 1.01 * roundings * std::ldexp(1, -24) * absolute * scale;
    }
  }
  T exact(size_t element) const {
    auto value = static_cast<uint64_t>(drawn_as<T>(0, element));
    T best = static_cast<T>(value);
    for (Rank r = 1; r < ranks_; ++r) {
      const T next = drawn_as<T>(r, element);
      value = call_.op == ReduceOp::prod ? value * static_cast<uint64_t>(next) : value + static_cast<uint64_t>(next);
      best = call_.op == ReduceOp::min ? std::min(best, next) : std::max(best, next);
    }
    if (call_.op == ReduceOp::min || call_.op == ReduceOp::max) return best;
    return call_.op == ReduceOp::avg ? static_cast<T>(static_cast<T>(value) / ranks_) : static_cast<T>(value);
  }

  engine::Call call_;
  int ranks_;
  bool in_place_;
  std::vector<std::vector<T, Allocator>> memory_;  // by rank
  std::vector<std::vector<T, Allocator>> before_;
};

}  // namespace gyre::test
