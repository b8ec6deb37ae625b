// What the ranks of a host showed for their latest mapped calls, and where that is here: an equal call need look up nothing where all show
// it again, which of a small one takes as long as its sum and its meetings. Used by one thread; allocates nothing after construction.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "engine/passes.h"

namespace gyre::engine {

/// What a rank shows where a call could be mapped. What lies behind the line that carries it is news, or else the input.
struct Shown {
  uint64_t input = 0, output = 0;  ///< addresses in the process that shows them
  uint64_t input_segment = 0, output_segment = 0;
  uint8_t in_heap = 0, has_news = 0;
  uint8_t unreadable = 0, in_place = 0;  ///< of a reduction that others are to read straight
  float saved = 0;                       ///< Contest's

  /// True of the same bytes.
  bool is(const std::byte* line) const;
};
static_assert(sizeof(Shown) == 5 * sizeof(uint64_t));  // there are no bytes between

class Settled {
 public:
  struct Call {
    uint64_t plan = 0;               ///< its hash; 0: none
    uint64_t changes = 0;            ///< of this process's heap, when the call was bound
    std::vector<Shown> shown;        ///< by rank
    std::vector<RankMemory> memory;  ///< by rank
  };

  explicit Settled(int ranks);
  /// The latest call of the plan, if the heap is as it was and `rank` had these buffers; null: there is none.
  const Call* find(uint64_t plan, Rank rank, const RankMemory& own);
  /// Where none shows news, which it will not show again. After find(): what the heap has released since, peers have yet to hear of.
  void keep(uint64_t plan, const std::vector<Shown>&, const std::vector<RankMemory>&);
  /// Memory that peers have shown may be gone.
  void forget();

 private:
  uint64_t changes_ = 0;     // of the heap, when find() looked
  std::vector<Call> calls_;  // by the last bits of the plan's hash
};

}  // namespace gyre::engine
