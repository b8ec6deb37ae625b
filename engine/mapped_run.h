// A call that is one kernel on each rank, while it is under way, as Work: ranks tell each other where their buffers are once their streams
// have come to the call, a rank's kernel goes when all have, and its stream when all kernels have ended. No kernel goes before all ranks
// have called the same. Makes no call into CUDA.
#pragma once
#include <memory>
#include <vector>

#include "engine/device_link.h"
#include "engine/device_mapped.h"
#include "engine/device_queue.h"
#include "engine/mapped_board.h"
#include "engine/planner.h"
#include "engine/work.h"

namespace gyre::engine {

class MappedRun final : public Work {
 public:
  struct Own {
    Rank rank = 0;
    BoundPass pass;
    MappedBuffers buffers;
  };
  /// `fifos`: by peer, null for this rank; they and the queue outlive it.
  MappedRun(std::shared_ptr<const Planned>, Own, const std::vector<transport::Fifo*>& fifos, const Identity&, DeviceQueue&, const Tickets&,
            TimeLimit, std::shared_ptr<MappedBoard>);

  Moved move() override;
  Rank stranger() const override { return stranger_; }
  TimeLimit limit() const override { return limit_; }
  bool waits_for_itself() const override { return ended_ < opened_; }
  std::vector<Rank> awaited() const override;
  std::string where() const override;
  Description description() const override { return {call_.number, call_.plan, *call_.text}; }
  std::vector<transport::Pair> pairs() const override { return {}; }

 private:
  /// Each says two things to each: where its buffers are, and that its kernel has ended.
  enum Word : uint8_t { comes, ends, words };

  bool exchange();
  bool note_ended();
  bool open();
  bool may_open();
  bool all_have(Word) const;
  bool begin_kernel();

  std::shared_ptr<const Planned> planned_;  // whose text the identity's is
  Own own_;
  Identity call_;
  DeviceQueue& queue_;
  Tickets tickets_;
  TimeLimit limit_;
  std::shared_ptr<MappedBoard> board_;
  std::vector<MappedBuffers> said_, heard_;  // a word's by rank, and then the other's; this one says the same to all
  Staging staging_;
  std::vector<std::unique_ptr<DeviceLink>> links_;  // by peer; null: this rank itself
  uint32_t opened_ = 0, ended_ = 0;                 // steps
  bool refused_ = false;                            // its kernel must not go, since a rank has left, of which this one will hear
  Rank stranger_ = -1;
};

}  // namespace gyre::engine
