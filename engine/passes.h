// Makes a rank's passes of a direct form (schedule/direct.h) on memory that it reaches. Used by one thread. It must not know: boards, when
// memory is ready.
#pragma once
#include <span>
#include <vector>

#include "engine/combine.h"
#include "engine/direct_plan.h"
#include "transport/attach.h"

namespace gyre::engine {

/// The buffers of a rank, by their addresses here, or in the process that they are attached of.
struct RankMemory {
  const std::byte* input = nullptr;
  std::byte* output = nullptr;
  const transport::Attached* process = nullptr;
};

class Passes {
 public:
  Passes(Rank rank, int ranks) : rank_(rank), ranks_(ranks) {}

  /// `away`: what is only copied is written past the caches. `memory`: by rank, of all that the form reaches; attached only where a pass
  /// is to this rank's own. `room`: for what a pass reduces of attached memory, which nobody else looks at. Error: that can't be read;
  /// Code::internal where the form is none for it.
  Status run(const DirectPlan&, const DirectForm&, std::span<const RankMemory> memory, bool away, std::span<std::byte> room = {});
  /// After that: whose memory it was.
  Rank unread() const { return unread_; }

 private:
  using Memory = std::span<const RankMemory>;
  using Place = BoundPass::Place;
  static const std::byte* input(const Place& at, Memory memory) { return memory[static_cast<size_t>(at.rank)].input + at.offset; }
  static std::byte* output(const Place& at, Memory memory) { return memory[static_cast<size_t>(at.rank)].output + at.offset; }
  static void combine(const BoundPass&, Memory, const kernels::Arithmetic&);
  void reduce(const BoundPass&, Memory);
  Status reduce_read(const BoundPass&, size_t element, Memory, std::span<std::byte> room);
  static void copy(const BoundPass&, size_t bytes, Memory, bool away);
  Status read(const Place& from, size_t offset, std::byte* to, size_t bytes, Memory);

  Rank rank_;
  int ranks_;
  Combine combine_;
  std::vector<const std::byte*> sources_;
  std::vector<std::byte*> sinks_;
  Rank unread_ = -1;
};

}  // namespace gyre::engine
