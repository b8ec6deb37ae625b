// A GPU of the host's threads, for the device engine's tests: streams are threads that do what they are given in order, kernels run on the
// executor, and all memory is the host's. A stream holds so many operations and then blocks its caller, as a real one does. What is not
// modelled: hardware queues that streams share.
#pragma once
#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "kernels/gpu.h"
#include "test/simt/executor.h"
#include "test/simt/fiber.h"

namespace gyre::simt {

class HostStream;

/// What streams were given while they were captured. It ends when nobody holds it and nothing of it is to be run any more.
class HostGraph {
 public:
  explicit HostGraph(uint64_t number) : number_(number) {}
  uint64_t number() const { return number_; }
  void add(std::function<void()> next) { all_.push_back(std::move(next)); }
  void keep(std::shared_ptr<void> kept) { kept_.push_back(std::move(kept)); }
  /// All of it, after what the stream was given before.
  static void launch(const std::shared_ptr<HostGraph>&, HostStream&);

 private:
  uint64_t number_;
  std::vector<std::function<void()>> all_;
  std::vector<std::shared_ptr<void>> kept_;
};

class HostStream final : public kernels::Stream {
 public:
  HostStream(size_t capacity, Grid grid) : capacity_(capacity), grid_(grid), thread_([this] { serve(); }) {}
  ~HostStream() override;

  Status wait(const uint64_t* flag, uint64_t value) override;
  Status raise(uint64_t* flag, uint64_t value) override;
  Status launch(kernels::StepKernel, const kernels::StepArgs&, unsigned blocks) override;
  Status launch(kernels::StayKernel, const kernels::StayArgs&, unsigned blocks) override;
  Status launch(kernels::PacketKernel, const kernels::PacketArgs&, unsigned blocks) override;
  Result<bool> done() override { return ++asked, done_within({}); }
  /// How often one was asked so, as a call into CUDA would.
  static inline std::atomic<int> asked{0};
  /// How many callers wait for room in one.
  static inline std::atomic<int> waiting{0};
  Result<uint64_t> capture_of(void* user) override;
  Status capture(void* user, kernels::StayKernel, const kernels::StayArgs&, unsigned blocks, std::shared_ptr<void> kept) override;
  Status follow(void* user) override;
  Status lead(void* user) override;

  /// By a handle: the address, or, as CUDA has them, 1 for the process's legacy stream and 2 for the calling thread's own.
  static HostStream& of(void* handle);
  /// Anything else, in order.
  void add(std::function<void()>);
  // From the one to the other nothing that is given is done.
  void begin_capture();
  std::shared_ptr<HostGraph> end_capture();
  bool is_captured();

  /// All that was given has been done; false: not within that time.
  bool done_within(std::chrono::milliseconds);

 private:
  void serve();

  size_t capacity_;
  Grid grid_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> given_;  // the first is being done
  std::shared_ptr<HostGraph> captured_;      // null: it is not captured
  bool over_ = false;
  bool let_go_ = false;  // the last flag was opened for good; of thread_
  std::thread thread_;
};

class HostGpu final : public kernels::Gpu {
 public:
  /// `grid.blocks`: of a kernel, at most.
  explicit HostGpu(Grid grid = {2, 32, 0}, size_t capacity = 1024) : grid_(grid), capacity_(capacity) {}

  Result<std::unique_ptr<kernels::Stream>> open_stream() override;
  Result<kernels::GpuMemory> allocate(size_t bytes) override;
  Result<kernels::GpuMemory> allocate_pinned(size_t bytes) override;
  Result<kernels::ReachableMemory> allocate_reachable(size_t bytes) override;
  Result<kernels::ReachedMemory> reach(std::string_view handle) override;
  Result<kernels::ExposedMemory> allocate_exposed(size_t bytes) override;
  unsigned resident_blocks() const override { return grid_.blocks; }

 private:
  Grid grid_;
  size_t capacity_;
};

}  // namespace gyre::simt
