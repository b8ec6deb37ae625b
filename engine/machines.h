// The machines of one rank, one per strand of a channel, running one collective together. Made as plans need them and kept, as is the
// scratch memory.
#pragma once
#include <memory>
#include <vector>

#include "engine/host_machine.h"
#include "engine/work.h"

namespace gyre::engine {

class Machines final : public Work {
 public:
  /// `fifos`: [channel][peer], null for this rank itself, and who is not joined with it.
  Machines(Rank rank, std::vector<std::vector<transport::Fifo*>> fifos, Away away)
      : rank_(rank), fifos_(std::move(fifos)), away_(away), kept_(fifos_.size()) {}
  /// Groups that run between the collectives; it must outlive this. Told of when a collective waits.
  void between(const Work& groups) { groups_ = &groups; }

  /// Prepares a run of a plan, which has no more channels than there are.
  void bind(const Plan&, const Identity&, const Buffers&);

  Moved move() override;
  Rank stranger() const override;
  std::vector<Rank> awaited() const override;
  Rank awaits_only() const override;
  std::string where() const override;
  Description description() const override { return {call_.number, call_.plan, *call_.text}; }
  std::vector<transport::Pair> pairs() const override { return groups_ != nullptr ? groups_->pairs() : std::vector<transport::Pair>(); }

 private:
  struct Free {
    void operator()(std::byte* memory) const { ::operator delete (memory, std::align_val_t{page}); }
  };
  static constexpr size_t page = 4096;

  std::byte* scratch(size_t bytes);
  const HostMachine* waiting() const;

  Rank rank_;
  std::vector<std::vector<transport::Fifo*>> fifos_;
  Away away_;
  std::vector<std::vector<std::unique_ptr<HostMachine>>> kept_;  // [channel][strand]
  std::vector<HostMachine*> running_;                            // those that the plan needs
  std::unique_ptr<std::byte, Free> scratch_;
  size_t scratch_bytes_ = 0;
  const Work* groups_ = nullptr;
  const Plan* plan_ = nullptr;
  Identity call_;
};

}  // namespace gyre::engine
