// Whether ranks of a host read large ordinary buffers straight from each other's processes, or have copies. The kernel, the processors'
// caches and who runs where decide which takes less time, by up to three times either way, and a virtual machine's processors move within
// seconds; so calls try both ways, and all go by what all have found (perf/results/2026-11-29-contest). The result's bits are the
// same by both.
#pragma once
#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <limits>

#include "engine/arguments.h"

namespace gyre::engine {

/// Of calls of one kind and about one size. All ranks make the same calls, and so count alike.
class Contest {
 public:
  /// So many calls try straight, twice as many copies, then as many straight again: a program's first calls take longer than all that
  /// follow, and of the first after a change the caches are the other way's. `period`: calls, until both ways are tried again.
  explicit Contest(uint32_t calls = 2, uint32_t period = 256) : in_turn_(calls), period_(period) {}

  /// Which way the next call goes.
  bool straight() const { return tries() ? (calls_ / in_turn_ + 1) / 2 % 2 == 0 && !refused_ : straight_; }
  /// Microseconds that this rank has found straight to save; all hear it at the next call. 0: nothing is known.
  float saved() const { return decides() && !refused_ ? best_[0] - best_[1] : 0; }
  /// All ranks have met for the next call. `saved`: by all of them, added in the order of ranks.
  void begin(float saved) {
    way_ = straight() ? 1 : 0;
    timed_ = tries();
    went_straight_ += way_;
    if (decides()) straight_ = saved >= 0 && !refused_;
    if (++calls_ < period_) return;
    calls_ = 0;
    refused_ = false;
    best_ = {never, never};
  }
  /// A rank could not read another's buffer, and copies carried the call: as all will for a while.
  void refuse() {
    refused_ = true;
    went_straight_ -= way_;
    straight_ = timed_ = false;
  }
  /// The call that began last has ended.
  void end(float microseconds) {
    if (timed_) best_[way_] = std::min(best_[way_], microseconds);
    timed_ = false;
  }
  /// So many calls, of all.
  uint64_t went_straight() const { return went_straight_; }

 private:
  static constexpr float never = std::numeric_limits<float>::max();

  bool tries() const { return calls_ < 4 * in_turn_; }
  bool decides() const { return calls_ == 4 * in_turn_; }

  uint32_t in_turn_, period_;
  uint32_t calls_ = 0;                       // of this period
  bool straight_ = true;                     // what all have found
  bool refused_ = false;                     // in this period
  bool timed_ = false;                       // the call under way
  uint8_t way_ = 1;                          // of that: 0 by copies, 1 straight
  uint64_t went_straight_ = 0;               // of all calls
  std::array<float, 2> best_{never, never};  // by way
};

/// By collective and size, within a factor of two.
class Contests {
 public:
  Contests() {
    for (auto& sizes : all_) std::fill_n(sizes.begin(), std::bit_width(long_block), Contest(4, 2048));
  }
  Contest& of(const Call& call) { return all_[static_cast<size_t>(call.collective)][std::bit_width(call.count * size_of(call.type))]; }
  /// Of blocks of so many bits' bytes.
  const Contest& of(Collective collective, int size_class) const {
    return all_[static_cast<size_t>(collective)][static_cast<size_t>(size_class)];
  }

 private:
  // Bytes. Of shorter ones more calls are needed; and so many take less time than it takes until processors are moved.
  static constexpr size_t long_block = 1 << 20;

  std::array<std::array<Contest, 65>, all_collectives().size()> all_;
};

}  // namespace gyre::engine
