// Collectives in CUDA graphs, as the GPU and the host speak of them: the places of a communicator that kernels of graphs have
// (kernels/stay.h), which of them have begun, and what they are assigned. Graphs hold it as long as they live, which may be longer than the
// communicator does: then its memory is all that a kernel of theirs still touches. It must not know: schedules, connections, streams.
#pragma once
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "base/result.h"
#include "kernels/gpu.h"
#include "kernels/mem.h"

namespace gyre::engine {

/// What kernels that stay are told. Pinned memory.
struct StayLane {
  static constexpr size_t ring = 1024;

  alignas(128) uint64_t gate;
  kernels::BlockFlag block_ended[kernels::most_stay_blocks];
  kernels::StayItem items[ring];

  void close_items();
  uint64_t ended(unsigned blocks) const;
};

class DeviceReplays : public std::enable_shared_from_this<DeviceReplays> {
 public:
  /// Takes pinned memory for so many collectives, kernels of so many blocks.
  static Result<std::shared_ptr<DeviceReplays>> open(kernels::Gpu&, unsigned blocks);

  struct Place {
    kernels::ReplaySlot* slot = nullptr;
    uint64_t id = 0;  ///< never used again
  };
  /// Memory for as many places again, by one thread at a time: that which grows this, too.
  struct Slab {
    kernels::GpuMemory memory;
    size_t places = 0;
  };
  Result<Slab> more_places(kernels::Gpu&) const;
  // By one thread at a time: of the communicator.
  size_t room() const { return free_.size(); }
  void grow(Slab);
  /// There must be room.
  Place take();
  void give_back(const Place& place) { free_.push_back(place.slot); }

  /// What a graph is to hold with that place's kernel. Whoever lets go of it last, in any thread, makes no call into CUDA.
  std::shared_ptr<void> holder(const Place&);
  /// Those whose holders are gone, since it was last asked.
  std::vector<uint64_t> released();

  /// A kernel that has begun: the first that has not been popped. Error: some were lost.
  Result<std::optional<uint64_t>> begun() const;
  void pop() { ++popped_; }
  /// There are such.
  bool any_begun() const { return latest_at_next() > popped_; }
  /// Lets the place's kernel go on, once: with so many tickets, of which it is told the first.
  uint64_t assign(const Place&, uint64_t tickets);
  /// No kernel waits any more, nor will; those that were assigned nothing leave.
  void close(kernels::ReplayDoor::State state);
  /// All kernels have left that were assigned something.
  bool all_left() const;

  StayLane& lane() { return shared_->lane; }
  kernels::ReplayDoor& door() { return shared_->door; }

 private:
  static constexpr size_t first_places = 512;
  struct Shared {
    kernels::ReplayDoor door;
    StayLane lane;
  };
  explicit DeviceReplays(unsigned blocks) : blocks_(blocks) {}
  const kernels::ReplayDoor::Start& next_start() const { return shared_->door.starts[popped_ % kernels::ReplayDoor::ring]; }
  /// What has been said where the next one is said to have begun.
  uint64_t latest_at_next() const { return kernels::load_acquire(&next_start().number); }

  unsigned blocks_;
  kernels::GpuMemory memory_;
  Shared* shared_ = nullptr;
  std::vector<kernels::GpuMemory> slabs_;
  std::vector<kernels::ReplaySlot*> slots_, free_;
  uint64_t ids_ = 0;
  uint64_t popped_ = 0;
  uint64_t tickets_ = 0;

  std::mutex mutex_;  // of what follows
  std::vector<uint64_t> released_;
  std::atomic<bool> any_released_{false};
};

}  // namespace gyre::engine
