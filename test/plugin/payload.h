// What the messages of the plugin's tests hold: computed from a message's place in the traffic, by both ends, so that neither need tell
// the other. A byte that is wrong, moved, or another message's is found, and so is one that was written behind a message's end.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace gyre::test {

/// A stream is a connection's messages of one tag; they are numbered in the order in which they are sent.
struct Place {
  uint64_t stream = 0;
  uint64_t number = 0;
};

/// Any two numbers have different and unlike results.
constexpr uint64_t mixed(uint64_t x) {
  x += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}
constexpr uint64_t mixed(uint64_t x, uint64_t y) { return mixed(mixed(x) + y); }

/// The bytes of a message, word by word.
class Content {
 public:
  explicit Content(Place place) : state_(mixed(place.stream, place.number)) {}
  uint64_t next() {
    state_ = state_ * 0x5851f42d4c957f2d + 0x14057b7ef767814f;
    return state_ ^ (state_ >> 29);
  }

 private:
  uint64_t state_;
};

inline void fill(Place place, std::span<std::byte> data) {
  Content words(place);
  for (size_t at = 0; at < data.size(); at += sizeof(uint64_t)) {
    const uint64_t word = words.next();
    std::memcpy(data.data() + at, &word, std::min(sizeof word, data.size() - at));
  }
}

inline bool holds(Place place, std::span<const std::byte> data) {
  Content words(place);
  for (size_t at = 0; at < data.size(); at += sizeof(uint64_t)) {
    const uint64_t word = words.next();
    if (std::memcmp(data.data() + at, &word, std::min(sizeof word, data.size() - at)) != 0) return false;
  }
  return true;
}

/// What memory holds where nothing was received.
inline constexpr std::byte untouched{0xa5};

inline void wipe(std::span<std::byte> data) { std::fill(data.begin(), data.end(), untouched); }
inline bool is_untouched(std::span<const std::byte> data) {
  return data.empty() || (data[0] == untouched && std::memcmp(data.data(), data.data() + 1, data.size() - 1) == 0);
}

}  // namespace gyre::test
