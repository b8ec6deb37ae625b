// The arrays of a step under test: each with a guard at both ends, an own distance from a multiple of 16 bytes, and numbers that hurt.
#pragma once
#include <algorithm>
#include <array>
#include <cstddef>
#include <random>
#include <vector>

#include "test/kernels/patterns.h"
#include "test/kernels/step_runner.h"

namespace gyre::test {

class StepMemory {
 public:
  /// offsets: by array, in elements.
  StepMemory(DataType type, size_t arrays, size_t count, const std::vector<size_t>& offsets)
      : bytes_(count * size_of(type)), arrays_(arrays) {
    for (size_t i = 0; i < arrays; ++i) {
      Array& array = arrays_[i];
      array.first = guard + offsets[i] * size_of(type);
      array.lines.resize((array.first + bytes_ + guard) / sizeof(Line) + 1);
      const Bytes& from = numbers(type, i);
      std::copy_n(from.begin(), bytes_, data(array) + array.first);
      array.before.assign(array.lines.begin(), array.lines.end());
    }
  }

  std::byte* at(size_t array) { return data(arrays_[array]) + arrays_[array].first; }

  /// Nothing but what begins at these places is other than it was.
  bool only_changed(const std::vector<std::byte*>& places) {
    for (size_t i = 0; i < arrays_.size(); ++i) {
      Array& array = arrays_[i];
      if (std::find(places.begin(), places.end(), at(i)) != places.end()) {
        const auto* before = reinterpret_cast<const std::byte*>(array.before.data());
        std::vector<Line> now(array.lines.begin(), array.lines.end());  // with its old middle
        std::copy_n(before + array.first, bytes_, reinterpret_cast<std::byte*>(now.data()) + array.first);
        if (now != array.before) return false;
      } else if (!std::equal(array.before.begin(), array.before.end(), array.lines.begin())) {
        return false;
      }
    }
    return true;
  }

 private:
  struct alignas(16) Line {
    std::array<uint64_t, 2> words{0xeeeeeeeeeeeeeeee, 0xeeeeeeeeeeeeeeee};
    bool operator==(const Line&) const = default;
  };
  struct Array {
    size_t first = 0;
    SharedVector<Line> lines;
    std::vector<Line> before;
  };
  static constexpr size_t guard = 64;
  static constexpr size_t most_bytes = 160 << 10;

  static std::byte* data(Array& array) { return reinterpret_cast<std::byte*>(array.lines.data()); }

  /// Random ones, and each fourth a special one; made once for each type.
  static const Bytes& numbers(DataType type, size_t array) {
    static std::array<std::array<Bytes, 8>, data_type_count> made;
    Bytes& bytes = made[static_cast<size_t>(type)][array];
    if (!bytes.empty()) return bytes;
    const Patterns special = special_patterns(type);
    std::mt19937_64 random(array * data_type_count + static_cast<size_t>(type));
    Patterns patterns;
    for (size_t i = 0; i < most_bytes / size_of(type); ++i) {
      const uint64_t bits = random();
      patterns.push_back(bits % 4 == 0 ? special[random() % special.size()] : bits);
    }
    bytes = packed(type, patterns);
    return bytes;
  }

  size_t bytes_;
  std::vector<Array> arrays_;
};

}  // namespace gyre::test
