#include "test/simt/gpu.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>
#include <new>
#include <string>
#include <utility>

#include "base/unique.h"
#include "kernels/mem.h"

namespace gyre::simt {
namespace {

constexpr auto alignment = std::align_val_t{256};  // cudaMalloc's

constexpr int unwritten = 0xa5;  // what nobody has written is no zero

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

/// What opens reachable memory: the file that it is, as this process has it open, and where this process has it.
struct Handle {
  pid_t process = 0;
  int file = -1;
  size_t bytes = 0;
  std::byte* address = nullptr;
};

std::byte* map(int file, size_t bytes) {
  void* const memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  return static_cast<std::byte*>(memory);
}

/// Of the process, as CUDA's (kernels/cuda_place.h), and never given back: who may still read it is not asked.
class ReachableStore {
 public:
  Handle take(size_t bytes) {
    const std::lock_guard lock(mutex_);
    if (const auto found = unused_.find(bytes); found != unused_.end()) return unused_.extract(found).mapped();
    Handle made{getpid(), memfd_create("gyre-simt", MFD_CLOEXEC), bytes, nullptr};
    if (made.file < 0 || ftruncate(made.file, static_cast<off_t>(bytes)) != 0) throw std::bad_alloc();
    made.address = map(made.file, bytes);
    std::memset(made.address, unwritten, std::min(bytes, filled));
    return made;
  }
  void give_back(const Handle& old) {
    const std::lock_guard lock(mutex_);
    unused_.emplace(old.bytes, old);
  }

  Result<std::byte*> reach(const Handle& handle) {
    if (handle.process == getpid()) return handle.address;
    const std::lock_guard lock(mutex_);
    std::byte*& known = reached_[{handle.process, handle.file}];
    if (known != nullptr) return known;
    const std::string path = "/proc/" + std::to_string(handle.process) + "/fd/" + std::to_string(handle.file);
    const UniqueFd file(open(path.c_str(), O_RDWR | O_CLOEXEC));
    if (file.get() < 0) return Error{Code::system, path + ": " + std::strerror(errno)};
    return known = map(file.get(), handle.bytes);
  }

 private:
  static constexpr size_t filled = 1 << 20;
  std::mutex mutex_;
  std::multimap<size_t, Handle> unused_;
  std::map<std::pair<pid_t, int>, std::byte*> reached_;
};

ReachableStore& reachable_store() {
  static auto& store = *new ReachableStore;  // communicators that nobody has destroyed end with the process
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

HostStream& HostStream::of(void* handle) {
  static auto& legacy = *new HostStream(1024, {2, 32, 0});  // as CUDA's, while there is a process
  thread_local std::unique_ptr<HostStream> own;
  const auto number = reinterpret_cast<uintptr_t>(handle);
  if (number == 1) return legacy;
  if (number != 2) return *static_cast<HostStream*>(handle);
  if (own == nullptr) own = std::make_unique<HostStream>(1024, Grid{2, 32, 0});
  return *own;
}

void HostStream::serve() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return over_ || !given_.empty(); });
    if (given_.empty()) return;
    std::function<void()> next = std::move(given_.front());  // which stays until that is done
    lock.unlock();
    next();
    next = nullptr;
    lock.lock();
    given_.pop_front();
    changed_.notify_all();
  }
}

void HostStream::add(std::function<void()> next) {
  std::unique_lock lock(mutex_);
  if (captured_ != nullptr) return captured_->add(std::move(next));
  if (given_.size() >= capacity_) {
    ++waiting;
    changed_.wait(lock, [this] { return given_.size() < capacity_; });
    --waiting;
  }
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

Status HostStream::launch(kernels::PacketKernel kernel, const kernels::PacketArgs& args, unsigned blocks) {
  add([=, grid = Grid{blocks, grid_.threads, grid_.seed}] { simt::launch(grid, [&] { kernel(args); }); });
  return {};
}

void HostStream::begin_capture() {
  static std::atomic<uint64_t> graphs{0};
  const std::lock_guard lock(mutex_);
  captured_ = std::make_shared<HostGraph>(++graphs);
}

std::shared_ptr<HostGraph> HostStream::end_capture() {
  const std::lock_guard lock(mutex_);
  return std::exchange(captured_, nullptr);
}

bool HostStream::is_captured() {
  const std::lock_guard lock(mutex_);
  return captured_ != nullptr;
}

void HostGraph::launch(const std::shared_ptr<HostGraph>& graph, HostStream& on) {
  for (size_t i = 0; i < graph->all_.size(); ++i) on.add([graph, i] { graph->all_[i](); });
}

Result<uint64_t> HostStream::capture_of(void* user) {
  if (user == nullptr) return 0;
  HostStream& stream = of(user);
  const std::lock_guard lock(stream.mutex_);
  return stream.captured_ != nullptr ? stream.captured_->number() : 0;
}

Status HostStream::capture(void* user, kernels::StayKernel kernel, const kernels::StayArgs& args, unsigned blocks,
                           std::shared_ptr<void> kept) {
  HostStream& stream = of(user);
  {
    const std::lock_guard lock(stream.mutex_);
    if (stream.captured_ == nullptr) return Error{Code::invalid_usage, "the capture of a CUDA graph has ended"};
    stream.captured_->keep(std::move(kept));
  }
  return stream.launch(kernel, args, blocks);
}

Status HostStream::follow(void* user) {
  if (user != nullptr) order(of(user), *this);
  return {};
}

Status HostStream::lead(void* user) {
  if (user != nullptr) order(*this, of(user));
  return {};
}

Result<std::unique_ptr<kernels::Stream>> HostGpu::open_stream() {
  return std::unique_ptr<kernels::Stream>(new HostStream(capacity_, grid_));
}

Result<kernels::GpuMemory> HostGpu::allocate(size_t bytes) { return memory(bytes, unwritten); }
Result<kernels::GpuMemory> HostGpu::allocate_pinned(size_t bytes) { return memory(bytes, 0); }

Result<kernels::ReachableMemory> HostGpu::allocate_reachable(size_t bytes) {
  const Handle taken = reachable_store().take(bytes);
  std::string handle(sizeof taken, '\0');
  std::memcpy(handle.data(), &taken, sizeof taken);
  return kernels::ReachableMemory{{taken.address, [taken](std::byte*) { reachable_store().give_back(taken); }}, std::move(handle)};
}

Result<kernels::ReachedMemory> HostGpu::reach(std::string_view handle) {
  Handle theirs;
  std::memcpy(&theirs, handle.data(), sizeof theirs);
  return kernels::ReachedMemory{GYRE_TRY(reachable_store().reach(theirs)), true, false, theirs.process == getpid()};
}

Result<kernels::ExposedMemory> HostGpu::allocate_exposed(size_t bytes) { return kernels::ExposedMemory{GYRE_TRY(allocate(bytes)), {}}; }

}  // namespace gyre::simt
