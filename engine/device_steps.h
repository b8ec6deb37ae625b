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

/// Where a plan's messages lie, and sums that are on their way. Connection channel * ranks + peer is to and from that peer.
struct Staging {
  /// [connection]: message 0, the others behind it; null: the plan has none there.
  std::vector<std::byte*> in, out;
  std::byte* sums = nullptr;  ///< of the GPU: two, of a message each
  size_t ranks = 1;
  size_t credits = 1;
  size_t place_bytes = 0;  ///< from one message to the next

  uint32_t connection(uint32_t channel, Rank peer) const { return static_cast<uint32_t>(channel * ranks + static_cast<size_t>(peer)); }
  std::byte* incoming(uint32_t connection, uint64_t message) const { return in[connection] + message % credits * place_bytes; }
  std::byte* outgoing(uint32_t connection, uint64_t message) const { return out[connection] + message % credits * place_bytes; }
  size_t sums_bytes() const { return 2 * place_bytes; }
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
  ReduceOp op = ReduceOp::sum;
  uint32_t step = 0;   ///< of DeviceSteps::steps
  uint32_t after = 0;  ///< kernels that must have ended before it begins, where they do not run one after another
};

struct DeviceStep {
  uint32_t kernels_end = 0;  ///< of its kernels; they begin where those of the step before end
  uint32_t arrivals = 0, sends = 0;
  uint32_t messages = 0;  ///< the first of DeviceSteps::messages: arrivals, then sends
  uint32_t round = 0;
  schedule::Turn turn;
};

struct DeviceSteps {
  std::vector<DeviceKernel> kernels;
  std::vector<DeviceStep> steps;
  std::vector<Passing> messages;
  std::vector<std::vector<size_t>> arriving, leaving;  ///< [connection]: bytes of each message

  /// Of all kernels: bytes that they read and write, with elements of so many.
  size_t traffic(size_t element_bytes) const;
  std::span<const Passing> arrivals(const DeviceStep& step) const { return {messages.data() + step.messages, step.arrivals}; }
  std::span<const Passing> sends(const DeviceStep& step) const { return {messages.data() + step.messages + step.arrivals, step.sends}; }
};

/// Of a plan without GYRE_NUMERICS=ordered. `turns`: the rank's, for the plan's slices and the staging's credits. `scratch`:
/// Plan::scratch_bytes() of the GPU.
DeviceSteps device_steps(const Plan&, Rank, std::span<const schedule::Turn> turns, const Buffers&, std::byte* scratch, const Staging&);

}  // namespace gyre::engine
