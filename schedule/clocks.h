// Vector clocks: what each program knows of how far the others have come. Time is counted in steps that have run. Private to order.cpp.
#pragma once
#include <algorithm>
#include <cstdint>
#include <vector>

namespace gyre::schedule {

using Clock = std::vector<uint32_t>;  // [program of the channel]: this many of its steps are over

/// Takes over what the other knows.
inline void join(Clock& clock, const Clock& other) {
  for (size_t i = 0; i < clock.size(); ++i) clock[i] = std::max(clock[i], other[i]);
}

/// Clocks that are used again: messages come and go.
class ClockPool {
 public:
  uint32_t copy_of(const Clock& clock) {
    if (free_.empty()) {
      clocks_.push_back(clock);
      return static_cast<uint32_t>(clocks_.size() - 1);
    }
    const uint32_t number = free_.back();
    free_.pop_back();
    clocks_[number] = clock;
    return number;
  }
  const Clock& operator[](uint32_t number) const { return clocks_[number]; }
  void free(uint32_t number) { free_.push_back(number); }

 private:
  std::vector<Clock> clocks_;
  std::vector<uint32_t> free_;
};

}  // namespace gyre::schedule
