// Inputs for tests of arithmetic: arrays of bit patterns of any type, chosen to hurt, and their bytes as a kernel takes them.
#pragma once
#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

#include "base/types.h"
#include "test/kernels/reference.h"

namespace gyre::test {

using Patterns = std::vector<uint64_t>;
using Bytes = std::vector<std::byte>;

inline Bytes packed(DataType type, const Patterns& patterns) {
  Bytes bytes;
  for (uint64_t pattern : patterns) {
    for (size_t i = 0; i < size_of(type); ++i) bytes.push_back(static_cast<std::byte>(pattern >> (8 * i)));
  }
  return bytes;
}

inline Patterns unpacked(DataType type, const Bytes& bytes) {
  Patterns patterns(bytes.size() / size_of(type));
  for (size_t i = 0; i < bytes.size(); ++i) {
    patterns[i / size_of(type)] |= static_cast<uint64_t>(bytes[i]) << (8 * (i % size_of(type)));
  }
  return patterns;
}

/// Zeros, ones, ends of the range, subnormals, infinities, NaNs: both signs of each.
inline Patterns special_patterns(DataType type) {
  Patterns magnitudes;
  switch (type) {
    case DataType::float16:
      magnitudes = {0, 1, 2, 0x3ff, 0x400, 0x401, 0x3555, 0x3bff, 0x3c00, 0x3c01, 0x7bff, 0x7c00, 0x7c01, 0x7fff};
      break;
    case DataType::bfloat16:
      magnitudes = {0, 1, 2, 0x7f, 0x80, 0x81, 0x3eab, 0x3f7f, 0x3f80, 0x3f81, 0x7f7f, 0x7f80, 0x7f81, 0x7fff};
      break;
    case DataType::float32:
      magnitudes = {0, 1, 0x7fffff, 0x800000, 0x3eaaaaab, 0x3f800000, 0x3f800001, 0x7f7fffff, 0x7f800000, 0x7f800001, 0x7fffffff};
      break;
    case DataType::float64:
      magnitudes = {0,
                    1,
                    0xfffffffffffff,
                    0x10000000000000,
                    0x3ff0000000000000,
                    0x3ff0000000000001,
                    0x7fefffffffffffff,
                    0x7ff0000000000000,
                    0x7ff0000000000001,
                    0x7fffffffffffffff};
      break;
    default:
      magnitudes = {0, 1, 2, 3, 100, pattern_mask(type) >> 1, pattern_mask(type) >> 2};
      break;
  }
  Patterns patterns = magnitudes;
  for (uint64_t magnitude : magnitudes) patterns.push_back(magnitude ^ (pattern_mask(type) ^ (pattern_mask(type) >> 1)));
  return patterns;
}

struct Pairs {
  Patterns a, b;
};

/// 8 bits: all pairs. Else all pairs of special patterns, random ones, and ones of similar size, where sums round most.
inline Pairs pairs_of(DataType type) {
  Pairs pairs;
  const auto add = [&](uint64_t a, uint64_t b) {
    pairs.a.push_back(a & pattern_mask(type));
    pairs.b.push_back(b & pattern_mask(type));
  };
  if (size_of(type) == 1) {
    for (uint64_t i = 0; i < 65536; ++i) add(i, i >> 8);
    return pairs;
  }
  const Patterns special = special_patterns(type);
  for (uint64_t a : special) {
    for (uint64_t b : special) add(a, b);
  }
  std::mt19937_64 random(static_cast<uint64_t>(type) + 1);
  const auto bits = static_cast<unsigned>(8 * size_of(type));
  for (int i = 0; i < 4000; ++i) {
    const uint64_t a = random();
    const uint64_t b = random();
    add(a, b);
    add(a, a ^ (b % (uint64_t{1} << (bits * 3 / 4))));
    add(a, special[b % special.size()]);
    add(a, a ^ (uint64_t{1} << (bits - 1)) ^ (b & 7));
  }
  return pairs;
}

}  // namespace gyre::test
