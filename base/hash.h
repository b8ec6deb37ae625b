// Hashes that are the same in every build and on every machine, unlike std::hash: ranks compare them, and files name what they were
// made with.
#pragma once
#include <cstdint>
#include <string_view>

namespace gyre {

constexpr uint64_t fnv1a(std::string_view text) {
  uint64_t value = 0xcbf29ce484222325;
  for (const char c : text) value = (value ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return value;
}

/// A number all of whose bits depend on all of x's: splitmix64's finalizer.
constexpr uint64_t mix(uint64_t x) {
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
  x = (x ^ x >> 27) * 0x94d049bb133111eb;
  return x ^ x >> 31;
}

}  // namespace gyre
