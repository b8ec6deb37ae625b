// An exchange of packets while it is under way, as Work. Ranks' kernels need nothing of it: it tells the other ranks what this one has
// called, and that its kernel has ended, so that calls that differ, and ranks that do not come, are found, and nobody gives back memory
// that another still reads. Makes no call into CUDA.
#pragma once
#include <memory>
#include <vector>

#include "engine/device_link.h"
#include "engine/device_queue.h"
#include "engine/planner.h"
#include "engine/work.h"

namespace gyre::engine {

class PacketRun final : public Work {
 public:
  /// `fifos`: by peer, null for this rank; they and the queue outlive it.
  PacketRun(std::shared_ptr<const Planned>, const std::vector<transport::Fifo*>& fifos, const Identity&, DeviceQueue&, const Tickets&,
            TimeLimit);

  Moved move() override;
  Rank stranger() const override { return stranger_; }
  TimeLimit limit() const override { return limit_; }
  bool waits_for_itself() const override { return !ended_ && !queue_.begun(tickets_); }
  std::vector<Rank> awaited() const override;
  std::string where() const override;
  Description description() const override { return {call_.number, call_.plan, *call_.text}; }
  std::vector<transport::Pair> pairs() const override { return {}; }

 private:
  std::shared_ptr<const Planned> planned_;  // whose text the identity's is
  Identity call_;
  DeviceQueue& queue_;
  Tickets tickets_;
  TimeLimit limit_;
  Staging staging_;                                 // of none of its messages, which are words only
  std::vector<std::unique_ptr<DeviceLink>> links_;  // by peer; null: this rank itself
  bool ended_ = false;                              // the kernel
  Rank stranger_ = -1;
};

}  // namespace gyre::engine
