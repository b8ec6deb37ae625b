// Which of a communicator's calls are one kernel on each rank, which reads all ranks' inputs and writes all their outputs, where they lie.
// It stands for a proven schedule of messages, and computes in its order: so it has the same bits. It must not know: streams, what is
// under way.
#pragma once
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <type_traits>

#include "engine/device_steps.h"
#include "engine/direct_plan.h"

namespace gyre::engine {

/// The form of such a plan, proven; null: its calls go by messages. The same on all ranks.
std::shared_ptr<const schedule::Direct> mapped_form(const Plan&);

class DeviceMapped {
 public:
  /// No calls are.
  DeviceMapped() = default;
  /// `reached`: all ranks are of this process and on one GPU, and streams wait for flags.
  DeviceMapped(Rank rank, bool reached) : rank_(rank), reached_(reached) {}

  Rank rank() const { return rank_; }
  /// What this rank does of such a call, be it nothing (no elements); none: messages carry it, for all ranks. Its own part is not the first
  /// of several.
  std::optional<BoundPass> pass(const Plan&);

 private:
  Rank rank_ = 0;
  bool reached_ = false;
  std::map<const schedule::Schedule*, std::shared_ptr<const schedule::Direct>> forms_;
};

/// A rank's steps: its stream has come, its kernel, all ranks' kernels have ended. The kernel is told by the list, of its ticket.
enum MappedStep : uint8_t { stream_comes, kernel_runs, kernels_end, mapped_steps };
DeviceSteps steps_of(const Call&, const BoundPass&, const kernels::StepList*, uint64_t first_ticket);
/// Bytes that its kernel reads and writes.
size_t mapped_traffic(const Call&, const BoundPass&);
/// By what a rank's part is multiplied, or by how many ranks an average of integers is divided.
uint64_t scalar_of_part(const Call&, uint64_t own, int ranks);

/// Where a rank's buffers are, as all ranks reach them, and its scalar. A message's bytes.
struct MappedBuffers {
  const std::byte* input = nullptr;
  std::byte* output = nullptr;
  uint64_t scalar = 0;
};
static_assert(std::is_trivially_copyable_v<MappedBuffers>);
/// For the kernel of that rank; all but the ticket. `buffers`: by rank.
void write_list(kernels::StepList&, const BoundPass&, Rank, std::span<const MappedBuffers> buffers);

}  // namespace gyre::engine
