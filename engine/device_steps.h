// A plan as kernels on one stream: the rank's steps in the order of schedule/turns.h, each as one or several kernels, with the addresses
// that they read and write and the messages that they wait for and make. Messages lie in staging, where the GPU reaches them: message m of
// a connection in place m % credits, counted anew in each collective. It must not know: streams, connections, how to wait.
#pragma once
#include <cstdint>
#include <vector>

#include "engine/plan.h"
#include "kernels/step.h"
#include "schedule/turns.h"

namespace gyre::engine {

/// What the slowest of a communicator's messages go by: the memory of this rank's GPU, links between GPUs, or the host and networks.
enum class MessagePath : uint8_t { one_gpu, gpus, host };

/// Where a plan's messages lie, and sums that are on their way. Connection channel * ranks + peer is to and from that peer.
struct Staging {
  /// [connection]: message 0, the others behind it; null: the plan has none there.
  std::vector<std::byte*> in, out;
  std::byte* sums = nullptr;  ///< of the GPU, of a message each, as many as the steps take
  size_t ranks = 1;
  size_t credits = 1;
  size_t place_bytes = 0;  ///< from one message to the next

  uint32_t connection(uint32_t channel, Rank peer) const { return static_cast<uint32_t>(channel * ranks + static_cast<size_t>(peer)); }
  std::byte* incoming(uint32_t connection, uint64_t message) const { return in[connection] + message % credits * place_bytes; }
  std::byte* outgoing(uint32_t connection, uint64_t message) const { return out[connection] + message % credits * place_bytes; }
  std::byte* sum(size_t which) const { return sums + which * place_bytes; }
};

/// A message of this collective.
struct Passing {
  uint32_t connection = 0;
  uint32_t number = 0;
};

/// What is run as one kernel. One without elements, of a step whose chunks are empty or already where they belong, is none.
struct DeviceKernel {
  kernels::StepArgs args{};
  kernels::Shape shape = kernels::Shape::one_to_one;
  DataType type = DataType::uint8;
  ReduceOp op = ReduceOp::sum;
  bool converts = false;  ///< one of kernels/ordered.h, without a shape
  uint32_t step = 0;      ///< of DeviceSteps::steps
  uint32_t after = 0;     ///< kernels that must have ended before it begins, where they do not run one after another
};

/// What a step reads.
struct DeviceSource {
  const std::byte* data = nullptr;
  bool own = false;                            ///< this rank's part, to be multiplied first where the operation says so
  schedule::Form form = schedule::Form::part;  ///< looked at in ordered numerics only
};

struct DeviceStep {
  uint32_t kernels_end = 0;  ///< of its kernels; they begin where those of the step before end
  uint32_t arrivals = 0, sends = 0;
  uint32_t messages = 0;  ///< the first of DeviceSteps::messages: arrivals, then sends
  uint32_t round = 0;
  schedule::Turn turn;
};

struct DeviceSteps {
  DataType type = DataType::uint8;  ///< of the arithmetic
  bool converts = false;            ///< partial sums are wider than elements (kernels/ordered.h)
  std::vector<DeviceKernel> kernels;
  std::vector<DeviceStep> steps;
  std::vector<Passing> messages;
  std::vector<std::vector<size_t>> arriving, leaving;  ///< [connection]: bytes of each message
  size_t sums = 0;                                     ///< of the staging's, that are kept

  /// Of all kernels: bytes that they read and write.
  size_t traffic() const;
  std::span<const Passing> arrivals(const DeviceStep& step) const { return {messages.data() + step.messages, step.arrivals}; }
  std::span<const Passing> sends(const DeviceStep& step) const { return {messages.data() + step.messages + step.arrivals, step.sends}; }
};

/// In what a call computes: what is only copied is copied as integers, which every GPU has.
DataType arithmetic_of(const Call&);

/// `turns`: the rank's, for the plan's slices and the staging's credits. `scratch`:
/// Plan::scratch_bytes() of the GPU.
DeviceSteps device_steps(const Plan&, Rank, std::span<const schedule::Turn> turns, const Buffers&, std::byte* scratch, const Staging&);

}  // namespace gyre::engine
