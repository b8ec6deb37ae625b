#include "transport/loopback.h"

#include <fmt/format.h>
#include <unistd.h>

#include <deque>
#include <map>
#include <mutex>

#include "base/text.h"
#include "transport/slot_fifo.h"

namespace gyre::transport {
namespace {

// The memory of a connection, shared by its two endpoints.
struct Rings {
  explicit Rings(const Slots& slots)
      : bytes(SlotRing::footprint(slots)), memory(new (std::align_val_t{SlotRing::page}) std::byte[2 * bytes]()) {}
  ~Rings() { ::operator delete[](memory, std::align_val_t{SlotRing::page}); }
  Rings(const Rings&) = delete;
  Rings& operator=(const Rings&) = delete;
  std::byte* ring(int side) const { return memory + static_cast<size_t>(side) * bytes; }

  size_t bytes;
  std::byte* memory;
};

struct Caller {
  std::shared_ptr<Rings> pair;  // shared: either endpoint may go first
  std::string hello;
};

// Whoever listens in this process. Only connecting takes the lock.
struct Registry {
  std::mutex mutex;
  uint64_t next = 1;
  std::map<uint64_t, std::deque<Caller>> listeners;
};
Registry& registry() {
  static Registry instance;
  return instance;
}

class LoopbackEndpoint final : public Endpoint {
 public:
  LoopbackEndpoint(Caller caller, const Slots& slots, int side)
      : caller_(std::move(caller)), fifo_(SlotRing(caller_.pair->ring(side), slots), SlotRing(caller_.pair->ring(1 - side), slots)) {}
  Result<bool> ready() override { return true; }
  std::string_view hello() const override { return caller_.hello; }
  Fifo& fifo() override { return fifo_; }

 private:
  Caller caller_;
  SlotFifo fifo_;
};

class LoopbackListener final : public Listener {
 public:
  explicit LoopbackListener(const Slots& slots) : slots_(slots) {
    const std::lock_guard lock(registry().mutex);
    id_ = registry().next++;
    registry().listeners[id_];
  }
  ~LoopbackListener() override {
    const std::lock_guard lock(registry().mutex);
    registry().listeners.erase(id_);
  }
  std::string address() const override { return fmt::format("{}:{}", getpid(), id_); }
  Result<std::unique_ptr<Endpoint>> accept() override {
    const std::lock_guard lock(registry().mutex);
    auto& callers = registry().listeners[id_];
    if (callers.empty()) return std::unique_ptr<Endpoint>();
    Caller caller = std::move(callers.front());
    callers.pop_front();
    return std::unique_ptr<Endpoint>(std::make_unique<LoopbackEndpoint>(std::move(caller), slots_, 1));
  }

 private:
  Slots slots_;
  uint64_t id_ = 0;
};

class LoopbackWorker final : public Worker {
 public:
  explicit LoopbackWorker(const Slots& slots) : slots_(slots) {}
  Result<std::unique_ptr<Listener>> listen() override { return std::unique_ptr<Listener>(std::make_unique<LoopbackListener>(slots_)); }
  Result<std::unique_ptr<Endpoint>> connect(std::string_view address, std::string_view hello) override {
    const std::lock_guard lock(registry().mutex);
    // The process is part of it: a child that was forked counts its listeners from where its parent was.
    const size_t colon = std::min(address.find(':'), address.size() - 1);
    const bool here = parse_number(address.substr(0, colon)) == static_cast<uint64_t>(getpid());
    const auto id = parse_number(address.substr(colon + 1));
    const auto found = registry().listeners.find(here ? id.value_or(0) : 0);
    if (found == registry().listeners.end()) {
      return Error{Code::remote,
                   fmt::format("loopback: nobody listens at '{}' in this process; ranks of other processes need shm or ucx", address)};
    }
    const Caller caller{std::make_shared<Rings>(slots_), std::string(hello)};
    found->second.push_back(caller);
    return std::unique_ptr<Endpoint>(std::make_unique<LoopbackEndpoint>(caller, slots_, 0));
  }
  Result<std::unique_ptr<Memory>> register_memory(std::span<std::byte>, MemoryKind) override { return std::make_unique<Memory>(); }
  unsigned progress() override { return 0; }

 private:
  Slots slots_;
};

}  // namespace

Result<std::unique_ptr<Worker>> open_loopback_worker(Slots slots) {
  return std::unique_ptr<Worker>(std::make_unique<LoopbackWorker>(slots));
}

}  // namespace gyre::transport
