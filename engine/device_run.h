// A collective on GPU memory while it is under way, as Work: has messages brought, and lets kernels go when what they read is there and
// what they write is free. Makes no call into CUDA.
#pragma once
#include <memory>
#include <vector>

#include "engine/device_link.h"
#include "engine/device_queue.h"
#include "engine/work.h"

namespace gyre::engine {

/// A plan as a rank's kernels, and where its messages lie.
struct DeviceProgram {
  std::shared_ptr<const Plan> plan;
  Rank rank = 0;
  Staging staging;
  DeviceSteps steps;
};

class DeviceRun final : public Work {
 public:
  /// What the identity's text belongs to must outlive it, as must the queue and the links' connections. `links`: [connection], null where
  /// the program has no messages; they belong to this program.
  DeviceRun(std::shared_ptr<const DeviceProgram>, std::vector<std::unique_ptr<DeviceLink>> links, const Identity&, DeviceQueue&,
            const Tickets&, TimeLimit);

  /// Runs it once more, after it has ended: for a replay, whose messages carry this word.
  void again(const Tickets&, uint64_t word);

  Moved move() override;
  Rank stranger() const override { return stranger_; }
  std::optional<Error> wrong() const override;
  TimeLimit limit() const override { return limit_; }
  bool waits_for_itself() const override { return ended_ < opened_; }
  std::vector<Rank> awaited() const override;
  std::string where() const override;
  Description description() const override { return {call_.number, call_.plan, *call_.text}; }
  std::vector<transport::Pair> pairs() const override { return {}; }

 private:
  Rank peer(uint32_t connection) const { return static_cast<Rank>(connection % program_->staging.ranks); }

  bool note_ended();
  bool open();
  bool may_begin(const DeviceStep&) const;
  bool idle() const;
  const DeviceStep* next() const { return opened_ < steps().kernels.size() ? &steps().steps[steps().kernels[opened_].step] : nullptr; }
  const DeviceSteps& steps() const { return program_->steps; }

  std::shared_ptr<const DeviceProgram> program_;  // of who gives its kernels to the stream, too
  Identity call_;
  DeviceQueue& queue_;
  Tickets tickets_;
  TimeLimit limit_;
  std::vector<std::unique_ptr<DeviceLink>> links_;  // [connection]
  std::vector<uint32_t> used_;                      // connections that have messages
  uint32_t opened_ = 0, ended_ = 0;                 // kernels
  uint32_t steps_ended_ = 0;
  Rank stranger_ = -1;
};

}  // namespace gyre::engine
