// A collective on GPU memory while it is under way, as Work: brings messages from connections to staging and back, and lets kernels go when
// what they read is there and what they write is free. Makes no call into CUDA.
#pragma once
#include <memory>
#include <vector>

#include "engine/device_queue.h"
#include "engine/work.h"

namespace gyre::engine {

/// What all collectives of a communicator share. All must outlive them.
struct DeviceLinks {
  Rank rank = 0;
  Staging staging;
  std::vector<transport::Fifo*> fifos;  ///< [connection]; null for the rank itself
};

class DeviceRun final : public Work {
 public:
  /// `plan` is kept, and so is what the identity's text belongs to.
  DeviceRun(std::shared_ptr<const Plan> plan, const Identity&, DeviceSteps, DeviceQueue&, const DeviceLinks&, const Tickets&, TimeLimit);

  Moved move() override;
  Rank stranger() const override { return stranger_; }
  TimeLimit limit() const override { return limit_; }
  bool waits_for_itself() const override { return ended_ < opened_; }
  std::vector<Rank> awaited() const override;
  std::string where() const override;
  Description description() const override { return {call_.number, call_.plan, *call_.text}; }
  std::vector<transport::Pair> pairs() const override { return {}; }

 private:
  /// Of this collective's messages on a connection, how many.
  struct Link {
    uint32_t announced = 0, arrived = 0, consumed = 0;  // in
    uint32_t made = 0, sent = 0, freed = 0;             // out
    std::vector<uint64_t> numbers;                      // [place]: what completed() must reach; of posted connections
  };
  transport::Fifo& fifo(uint32_t connection) const { return *links_.fifos[connection]; }
  Rank peer(uint32_t connection) const { return static_cast<Rank>(connection % links_.staging.ranks); }

  bool note_ended();
  bool receive(uint32_t connection);
  bool send(uint32_t connection);
  bool pass(transport::Fifo&, Link&, const std::byte* message, size_t bytes) const;
  bool open();
  bool may_begin(const DeviceStep&) const;
  bool idle() const;
  const DeviceStep* next() const { return opened_ < steps_.kernels.size() ? &steps_.steps[steps_.kernels[opened_].step] : nullptr; }

  std::shared_ptr<const Plan> plan_;
  Identity call_;
  DeviceSteps steps_;
  DeviceQueue& queue_;
  const DeviceLinks& links_;
  Tickets tickets_;
  TimeLimit limit_;
  std::vector<Link> state_;          // [connection]
  std::vector<uint32_t> used_;       // connections that have messages
  uint32_t opened_ = 0, ended_ = 0;  // kernels
  uint32_t steps_ended_ = 0;
  Rank stranger_ = -1;
};

}  // namespace gyre::engine
