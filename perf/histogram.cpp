#include "perf/histogram.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <iterator>
#include <vector>

#include "base/text.h"

namespace gyre::perf {

// Below 2^bits a bucket for each nanosecond; above, 2^bits for each power of two.
size_t Histogram::bucket(uint64_t ns) {
  if (ns < (uint64_t{1} << bits)) return ns;
  const unsigned shift = static_cast<unsigned>(std::bit_width(ns)) - 1 - bits;
  return (size_t{shift} << bits) + (ns >> shift);  // the leading one counts the bucket's power on
}

double Histogram::middle(size_t bucket) {
  if (bucket < (size_t{1} << bits)) return static_cast<double>(bucket);
  const size_t shift = (bucket >> bits) - 1;
  const double first = std::ldexp(static_cast<double>((bucket & ((size_t{1} << bits) - 1)) | (size_t{1} << bits)), static_cast<int>(shift));
  return first + (std::ldexp(1, static_cast<int>(shift)) - 1) / 2;
}

void Histogram::merge(const Histogram& other) {
  for (size_t i = 0; i < buckets; ++i) counts_[i] += other.counts_[i];
  total_ += other.total_;
  least_ = std::min(least_, other.least_);
  most_ = std::max(most_, other.most_);
}

double Histogram::percentile(double percent) const {
  if (total_ == 0) return 0;
  const auto rank = std::clamp<uint64_t>(static_cast<uint64_t>(std::ceil(static_cast<double>(total_) * percent / 100)), 1, total_);
  uint64_t seen = 0;
  size_t at = 0;
  while ((seen += counts_[at]) < rank) ++at;
  return std::clamp(middle(at), static_cast<double>(least_), static_cast<double>(most_));
}

Percentiles Histogram::percentiles(double calls) const {
  const auto us = [&](double ns) { return ns / calls / 1e3; };
  if (total_ == 0) return {};
  return {
      total_, us(static_cast<double>(least_)), us(percentile(50)), us(percentile(90)), us(percentile(99)), us(static_cast<double>(most_))};
}

std::string Histogram::text() const {
  std::string out = fmt::format("{} {}", least_, most_);
  for (size_t i = 0; i < buckets; ++i) {
    if (counts_[i] != 0) fmt::format_to(std::back_inserter(out), " {} {}", i, counts_[i]);
  }
  return out;
}

std::optional<Histogram> Histogram::parse(std::string_view text) {
  std::vector<uint64_t> numbers;
  for (size_t at = 0; at <= text.size();) {
    const size_t end = std::min(text.find(' ', at), text.size());
    const auto number = parse_number(text.substr(at, end - at));
    if (!number) return std::nullopt;
    numbers.push_back(*number);
    at = end + 1;
  }
  if (numbers.size() % 2 != 0) return std::nullopt;
  Histogram made;
  made.least_ = numbers[0];
  made.most_ = numbers[1];
  for (size_t i = 2; i < numbers.size(); i += 2) {
    if (numbers[i] >= buckets) return std::nullopt;
    made.counts_[numbers[i]] += numbers[i + 1];
    made.total_ += numbers[i + 1];
  }
  return made;
}

}  // namespace gyre::perf
