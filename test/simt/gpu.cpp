#include "test/simt/gpu.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <new>
#include <vector>

#include "kernels/mem.h"

namespace gyre::simt {
namespace {

constexpr auto alignment = std::align_val_t{256};  // cudaMalloc's

constexpr int untouched = -1;

kernels::GpuMemory memory(size_t bytes, int filling) {
  auto* data = static_cast<std::byte*>(::operator new(std::max<size_t>(bytes, 1), alignment));
  if (filling != untouched) std::memset(data, filling, bytes);
  return {data, [](std::byte* old) { ::operator delete(old, alignment); }};
}

/// What one stream is to wait for of another.
struct Event {
  uint64_t flag = 0;
};

void await(const uint64_t* flag, uint64_t value) {
  while (static_cast<int64_t>(kernels::load_acquire(flag) - value) < 0) std::this_thread::yield();
}

void order(HostStream& first, HostStream& then) {
  const auto event = std::make_shared<Event>();
  first.add([event] { kernels::store_release(&event->flag, 1); });
  then.add([event] { await(&event->flag, 1); });
}

/// Of the process, as CUDA's (kernels/cuda_place.h): who may still read it is not asked.
class ReachableStore {
 public:
  std::byte* take(size_t bytes) {
    const std::lock_guard lock(mutex_);
    if (const auto found = unused_.find(bytes); found != unused_.end()) return unused_.extract(found).mapped();
    return all_.emplace_back(memory(bytes, bytes <= filled ? 0xa5 : untouched)).get();
  }
  void give_back(std::byte* old, size_t bytes) {
    const std::lock_guard lock(mutex_);
    unused_.emplace(bytes, old);
  }

 private:
  static constexpr size_t filled = 1 << 20;
  std::mutex mutex_;
  std::vector<kernels::GpuMemory> all_;
  std::multimap<size_t, std::byte*> unused_;
};

ReachableStore& reachable_store() {
  static ReachableStore store;
  return store;
}

}  // namespace

HostStream::~HostStream() {
  {
    const std::lock_guard lock(mutex_);
    over_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void HostStream::serve() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return over_ || !given_.empty(); });
    if (given_.empty()) return;
    const std::function<void()> next = given_.front();
    lock.unlock();
    next();
    lock.lock();
    given_.pop_front();
    changed_.notify_all();
  }
}

void HostStream::add(std::function<void()> next) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return given_.size() < capacity_; });
  given_.push_back(std::move(next));
  changed_.notify_all();
}

bool HostStream::done_within(std::chrono::milliseconds limit) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, limit, [this] { return given_.empty(); });
}

Status HostStream::wait(const uint64_t* flag, uint64_t value) {
  add([=, this] {
    await(flag, value);
    let_go_ = kernels::load_acquire(flag) == kernels::all_tickets;
  });
  return {};
}

Status HostStream::raise(uint64_t* flag, uint64_t value) {
  add([=] { kernels::store_release(flag, value); });
  return {};
}

Status HostStream::launch(kernels::StepKernel kernel, const kernels::StepArgs& args, unsigned blocks) {
  // One that is let go computes what no longer matters, on memory that others may be writing.
  add([=, this, grid = Grid{blocks, grid_.threads, grid_.seed}] {
    simt::launch(grid, [&] {
      const Unwatched unwatched(let_go_);
      kernel(args);
    });
  });
  return {};
}

Status HostStream::launch(kernels::StayKernel kernel, const kernels::StayArgs& args, unsigned blocks) {
  add([=, grid = Grid{blocks, grid_.threads, grid_.seed}] { simt::launch(grid, [&] { kernel(args); }); });
  return {};
}

Status HostStream::follow(void* user) {
  if (user != nullptr) order(*static_cast<HostStream*>(user), *this);
  return {};
}

Status HostStream::lead(void* user) {
  if (user != nullptr) order(*this, *static_cast<HostStream*>(user));
  return {};
}

Result<std::unique_ptr<kernels::Stream>> HostGpu::open_stream() {
  return std::unique_ptr<kernels::Stream>(new HostStream(capacity_, grid_));
}

// What nobody has written is no zero.
Result<kernels::GpuMemory> HostGpu::allocate(size_t bytes) { return memory(bytes, 0xa5); }
Result<kernels::GpuMemory> HostGpu::allocate_pinned(size_t bytes) { return memory(bytes, 0); }

Result<kernels::ReachableMemory> HostGpu::allocate_reachable(size_t bytes) {
  std::byte* const data = reachable_store().take(bytes);
  std::string handle(sizeof data, '\0');
  std::memcpy(handle.data(), &data, sizeof data);
  return kernels::ReachableMemory{{data, [bytes](std::byte* old) { reachable_store().give_back(old, bytes); }}, std::move(handle)};
}

Result<std::byte*> HostGpu::reach(std::string_view handle) {
  std::byte* data = nullptr;
  std::memcpy(&data, handle.data(), sizeof data);
  return data;
}

}  // namespace gyre::simt
