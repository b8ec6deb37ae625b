#include "test/simt/gpu.h"

#include <algorithm>
#include <cstring>
#include <new>

#include "kernels/mem.h"

namespace gyre::simt {
namespace {

constexpr auto alignment = std::align_val_t{256};  // cudaMalloc's

kernels::GpuMemory memory(size_t bytes, int filling) {
  auto* data = static_cast<std::byte*>(::operator new(std::max<size_t>(bytes, 1), alignment));
  std::memset(data, filling, bytes);
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
  add([=] { await(flag, value); });
  return {};
}

Status HostStream::raise(uint64_t* flag, uint64_t value) {
  add([=] { kernels::store_release(flag, value); });
  return {};
}

Status HostStream::launch(kernels::StepKernel kernel, const kernels::StepArgs& args, unsigned blocks) {
  add([=, grid = Grid{blocks, grid_.threads, grid_.seed}] { simt::launch(grid, [&] { kernel(args); }); });
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

}  // namespace gyre::simt
