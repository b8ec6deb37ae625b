// What the device engine asks of a GPU: memory, and streams that wait for flags, run kernels and raise flags. cuda_gpu.h has NVIDIA's;
// test/simt has one of the host's threads. It must not know: CUDA, schedules, ranks.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/unique.h"
#include "kernels/packet.h"
#include "kernels/stay.h"

namespace gyre::kernels {

/// Memory that its owner gives back.
using GpuMemory = std::unique_ptr<std::byte[], std::function<void(std::byte*)>>;

/// GPU memory that kernels of other ranks on this host can reach, who open it by the handle.
struct ReachableMemory {
  GpuMemory memory;
  std::string handle;
};

/// What another rank has allocated so, where this GPU's kernels reach it.
struct ReachedMemory {
  std::byte* address = nullptr;
  bool on_this_gpu = false;
  bool in_turns = false;    ///< kernels of its process and of this one run in turns, of milliseconds
  bool in_process = false;  ///< another rank of this process has
};

/// GPU memory that other devices on PCI may reach: by its address where the system has told their drivers of it, or as a file.
struct ExposedMemory {
  GpuMemory memory;
  UniqueFd dmabuf{};  ///< of all of it; none where the driver makes none
};

/// A flag that is opened for all tickets there will ever be. Streams compare as signed numbers and by their difference, so that the
/// largest unsigned one would be less than any ticket.
inline constexpr uint64_t all_tickets = INT64_MAX;
static_assert(static_cast<int64_t>(all_tickets - 1) >= 0,
              "a flag opened for all tickets would be less than the first, and hold streams for good");

/// Work for a GPU, done in order. Every call returns at once, unless the GPU's queue is full.
class Stream {
 public:
  Stream() = default;
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  virtual ~Stream() = default;  ///< waits until all is done

  /// Goes on when *flag has reached the value. Flags lie in pinned memory.
  virtual Status wait(const uint64_t* flag, uint64_t value) = 0;
  /// Sets the flag once all before is done; who sees it on the host sees what that wrote.
  virtual Status raise(uint64_t* flag, uint64_t value) = 0;
  virtual Status launch(StepKernel, const StepArgs&, unsigned blocks) = 0;
  virtual Status launch(StayKernel, const StayArgs&, unsigned blocks) = 0;
  virtual Status launch(PacketKernel, const PacketArgs&, unsigned blocks) = 0;
  /// All that was given has been done. Error: the GPU has failed, and nothing more will be. From any thread.
  virtual Result<bool> done() = 0;
  /// The graph that `user` is being captured in, by number; 0: none. Error: `user` can't be followed or led.
  virtual Result<uint64_t> capture_of(void* user) = 0;
  /// Adds a kernel to that graph, behind what `user` was given so far and what this has added to the same graph. `kept` is held as long
  /// as the graph, or what is made of it, lives or runs, and let go by any thread.
  virtual Status capture(void* user, StayKernel, const StayArgs&, unsigned blocks, std::shared_ptr<void> kept) = 0;
  /// What comes from now on begins after all that was given to `user` (a cudaStream_t), and
  virtual Status follow(void* user) = 0;
  /// what is given to `user` from now on begins after all that was given to this.
  virtual Status lead(void* user) = 0;
};

class Gpu {
 public:
  Gpu() = default;
  Gpu(const Gpu&) = delete;
  Gpu& operator=(const Gpu&) = delete;
  virtual ~Gpu() = default;

  /// Of the highest priority. From any thread, as all here.
  virtual Result<std::unique_ptr<Stream>> open_stream() = 0;
  virtual Result<GpuMemory> allocate(size_t bytes) = 0;
  /// Of the host, which the GPU reaches at the same address; zeros.
  virtual Result<GpuMemory> allocate_pinned(size_t bytes) = 0;
  /// Error: others can't reach this GPU's memory. What is given back may still be read: it stays mapped as long as this process lives.
  virtual Result<ReachableMemory> allocate_reachable(size_t bytes) = 0;
  /// What a rank on this host, of this process or another, has allocated so; as long as both processes live. Error: this GPU's kernels
  /// can't reach it.
  virtual Result<ReachedMemory> reach(std::string_view handle) = 0;
  /// Error: no other device reaches this GPU's memory.
  virtual Result<ExposedMemory> allocate_exposed(size_t bytes) = 0;
  /// Whether its kernels reduce this type.
  virtual bool computes(DataType) const { return true; }
  /// Whether its streams can wait for flags.
  virtual bool streams_wait() const { return true; }
  /// Blocks that surely run at the same time.
  virtual unsigned resident_blocks() const = 0;
};

}  // namespace gyre::kernels
