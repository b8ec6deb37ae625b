// Makes a rank's passes of a direct form (schedule/direct.h) on memory that it reaches. Used by one thread. It must not know: boards, when
// memory is ready.
#pragma once
#include <span>
#include <vector>

#include "engine/combine.h"
#include "engine/direct_plan.h"

namespace gyre::engine {

/// The buffers of a rank, by their addresses here.
struct RankMemory {
  const std::byte* input = nullptr;
  std::byte* output = nullptr;
};

class Passes {
 public:
  Passes(Rank rank, int ranks) : rank_(rank), ranks_(ranks) {}

  /// `memory`: by rank, of all that the form reaches.
  void run(const DirectPlan&, const DirectForm&, std::span<const RankMemory> memory);

 private:
  Rank rank_;
  int ranks_;
  Combine combine_;
  std::vector<const std::byte*> sources_;
  std::vector<std::byte*> sinks_;
};

}  // namespace gyre::engine
