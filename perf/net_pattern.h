// What messages hold while they are checked: words that differ by message and by place, so that data that is late, moved or of another
// message is seen.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace gyre::perf {

inline uint64_t pattern_word(uint64_t message, size_t index) {
  return (message + 1) * 0x9e3779b97f4a7c15U + (index + 1) * 0xd1342543de82ef95U;
}

inline void fill_pattern(std::span<std::byte> data, uint64_t message) {
  for (size_t at = 0; at < data.size(); at += sizeof(uint64_t)) {
    const uint64_t word = pattern_word(message, at / sizeof word);
    std::memcpy(data.data() + at, &word, std::min(sizeof word, data.size() - at));
  }
}

/// Bytes that are not the pattern's.
inline uint64_t count_wrong_bytes(std::span<const std::byte> data, uint64_t message) {
  uint64_t wrong = 0;
  for (size_t at = 0; at < data.size(); at += sizeof(uint64_t)) {
    const uint64_t right = pattern_word(message, at / sizeof right);
    const size_t length = std::min(sizeof right, data.size() - at);
    if (std::memcmp(data.data() + at, &right, length) == 0) continue;
    const auto* bytes = reinterpret_cast<const std::byte*>(&right);
    for (size_t i = 0; i < length; ++i) wrong += data[at + i] != bytes[i] ? 1 : 0;
  }
  return wrong;
}

}  // namespace gyre::perf
