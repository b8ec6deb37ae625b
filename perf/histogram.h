// Times of iterations, counted by their length: any number of them in the same 60 KB, which a sweep of millions needs. A bucket is at most
// 1/128 as wide as what it holds, so that a percentile is within 0.4 % of the exact one; the least and the most are exact.
// Buckets of equal width within a power of two, as HdrHistogram has them (hdrhistogram.org).
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace gyre::perf {

/// What is told of many iterations, of all ranks together.
struct Percentiles {
  uint64_t iterations = 0;
  double min_us = 0, p50_us = 0, p90_us = 0, p99_us = 0, max_us = 0;
};

class Histogram {
 public:
  void add(uint64_t ns) {
    ++counts_[bucket(ns)];
    ++total_;
    least_ = ns < least_ ? ns : least_;
    most_ = ns > most_ ? ns : most_;
  }
  void merge(const Histogram&);

  uint64_t count() const { return total_; }
  /// The nearest-rank percentile in nanoseconds: the smallest time that so many percent of all do not exceed. 0: there are none.
  double percentile(double percent) const;
  /// `calls`: of an iteration; the times are of one of them.
  Percentiles percentiles(double calls) const;

  /// For another rank, and from it; empty where the text is none.
  std::string text() const;
  static std::optional<Histogram> parse(std::string_view);

 private:
  static constexpr unsigned bits = 7;  // of a time that its bucket keeps below the leading one
  static constexpr size_t buckets = size_t{64 - bits + 1} << bits;

  static size_t bucket(uint64_t ns);
  static double middle(size_t bucket);

  std::array<uint64_t, buckets> counts_{};
  uint64_t total_ = 0;
  uint64_t least_ = UINT64_MAX;
  uint64_t most_ = 0;
};

}  // namespace gyre::perf
