// Which rules can be the answer to a call, found without a look at the others: NCCL asks before every collective. Rules that name the same
// collective, operations and registration form a group; its bounds cut the sizes into segments, and of each segment only the first rule of
// an algorithm and protocol is kept, since what holds back that one (the communicator lacks both) holds back all others of the kind. So a
// segment has 21 rules at most, whatever the file.
#pragma once
#include <compare>
#include <span>

#include "plugin/tuner_rules.h"

namespace gyre::plugin {

class TunerIndex {
 public:
  /// What a group's rules say, `any` included.
  struct Key {
    ncclFunc_t collective;
    int64_t operations, registered;

    auto operator<=>(const Key&) const = default;  // NOLINT(modernize-use-nullptr): clang-tidy 14 takes its 0 for a pointer
  };

  /// Time grows as n log n, memory with the number of rules.
  explicit TunerIndex(std::span<const TunerRule>);

  /// Of the group with this key, by their places in the list, rising. Takes no memory, no lock, never fails.
  std::span<const uint32_t> fitting(const Key&, uint64_t bytes) const noexcept;

 private:
  struct Segment {
    uint64_t from;   ///< the least size; it ends where the next one begins
    uint32_t rules;  ///< where in rules_ its own begin; they end where the next one's begin
  };
  struct Group {
    Key key;
    size_t first = 0, end = 0;  ///< of segments_; the last one is empty, or has no end
  };

  void add(const Key&, std::span<const TunerRule>, std::span<const uint32_t> members);

  std::vector<Group> groups_;  ///< by key
  std::vector<Segment> segments_;
  std::vector<uint32_t> rules_;
};

}  // namespace gyre::plugin
