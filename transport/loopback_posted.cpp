#include "transport/loopback_posted.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <map>
#include <mutex>
#include <random>

#include "base/pool.h"
#include "transport/posted_fifo.h"

namespace gyre::transport {
namespace {

constexpr const char* peer_closed = "the peer closed the connection";

struct LoopbackRequest : Request {
  uint64_t tag = 0;
  std::byte* data = nullptr;  // of a send: only read
  size_t capacity = 0;
  uint32_t late = 0;  // progress() calls until done
};
using Requests = std::vector<LoopbackRequest*>;

// What one side of a connection has posted and not matched, and what was matched and not seen by its progress().
struct Side {
  Requests sends, receives, matched;
  bool closed = false;
};

// Shared: the two ends live on two threads, and either may go first.
struct Connection {
  std::mutex mutex;
  std::array<Side, 2> sides;
  std::string hello;
  std::atomic<bool> accepted = false;
};

struct Backlog {
  std::mutex mutex;
  std::vector<std::shared_ptr<Connection>> waiting;
};

struct Backlogs {
  std::mutex mutex;
  uint64_t next = 1;
  std::map<std::string, std::shared_ptr<Backlog>, std::less<>> listeners;
};

Backlogs& backlogs() {
  static Backlogs all;
  return all;
}

// The oldest of `posted` with this tag, taken out; null: none.
LoopbackRequest* take_match(Requests& posted, uint64_t tag) {
  const auto it = std::find_if(posted.begin(), posted.end(), [&](auto* r) { return r->tag == tag; });
  if (it == posted.end()) return nullptr;
  auto* found = *it;
  posted.erase(it);
  return found;
}

void copy(const LoopbackRequest& from, LoopbackRequest& to) {
  to.bytes = std::min(from.capacity, to.capacity);
  if (to.bytes > 0) std::memcpy(to.data, from.data, to.bytes);
  if (from.capacity > to.capacity) to.failure = "the message is longer than the receive";
}

void fail_all(Requests& posted, Requests& matched) {
  for (auto* request : posted) request->failure = peer_closed;
  matched.insert(matched.end(), posted.begin(), posted.end());
  posted.clear();
}

class PostedLoopbackEndpoint;

class PostedLoopbackWorker final : public Worker {
 public:
  PostedLoopbackWorker(Slots slots, uint32_t seed, bool any_memory)
      : slots_(slots), delays_(seed != 0), any_memory_(any_memory), random_(seed) {}
  Result<std::unique_ptr<Listener>> listen() override;
  Result<std::unique_ptr<Endpoint>> connect(std::string_view address, std::string_view hello) override;
  Result<std::unique_ptr<Memory>> register_memory(std::span<std::byte>, MemoryKind) override { return std::make_unique<Memory>(); }
  unsigned progress() override;
  const Error* failure() const override { return failure_ ? &*failure_ : nullptr; }

  std::unique_ptr<Endpoint> add(std::shared_ptr<Connection>, size_t side);
  void remove(PostedLoopbackEndpoint* endpoint) { std::erase(endpoints_, endpoint); }
  void fail(const Error& error) {
    if (!failure_) failure_ = error;
  }
  Slots slots() const { return slots_; }
  bool any_memory() const { return any_memory_; }
  uint32_t delay() { return delays_ ? static_cast<uint32_t>(random_() % 8) : 0; }

 private:
  Slots slots_;
  bool delays_, any_memory_;
  std::minstd_rand random_;
  std::vector<PostedLoopbackEndpoint*> endpoints_;
  std::optional<Error> failure_;
};

class PostedLoopbackEndpoint final : public Endpoint {
 public:
  PostedLoopbackEndpoint(PostedLoopbackWorker& worker, std::shared_ptr<Connection> connection, size_t side)
      : worker_(worker), connection_(std::move(connection)), side_(side), pool_(requests_of(worker.slots())) {
    late_.reserve(requests_of(worker.slots()));
    for (auto* list : {&mine().sends, &mine().receives, &mine().matched}) list->reserve(requests_of(worker.slots()));
  }
  ~PostedLoopbackEndpoint() override {
    worker_.remove(this);
    std::lock_guard lock(connection_->mutex);
    mine().closed = true;
    mine().sends.clear();
    mine().receives.clear();
    fail_all(peer().sends, peer().matched);
    fail_all(peer().receives, peer().matched);
  }

  Result<bool> ready() override { return connection_->accepted.load(); }
  std::string_view hello() const override { return connection_->hello; }
  Fifo& fifo() override {
    if (!fifo_) {
      fifo_ = std::make_unique<PostedFifo>(*this, worker_, worker_.slots(), [this](const Error& error) { worker_.fail(error); });
    }
    return *fifo_;
  }
  Request* send(uint64_t tag, std::span<const std::byte> data, const Memory* memory) override {
    // const is cast away to use one request type for both; the data of a send is only read.
    auto* request = make(tag, const_cast<std::byte*>(data.data()), data.size());
    if (request && may_move(*request, memory))
      meet(*request, &Side::sends, &Side::receives, [](auto& own, auto& other) { copy(own, other); });
    return request;
  }
  Request* receive(uint64_t tag, std::span<std::byte> data, const Memory* memory) override {
    auto* request = make(tag, data.data(), data.size());
    if (request && may_move(*request, memory))
      meet(*request, &Side::receives, &Side::sends, [](auto& own, auto& other) { copy(other, own); });
    return request;
  }
  bool takes_any_memory() const override { return worker_.any_memory(); }
  void release(Request* request) override { pool_.give(static_cast<LoopbackRequest*>(request)); }
  unsigned progress();

 private:
  static size_t requests_of(Slots slots) { return std::max<size_t>(256, PostedFifo::requests_needed(slots)); }
  Side& mine() { return connection_->sides[side_]; }
  Side& peer() { return connection_->sides[1 - side_]; }

  LoopbackRequest* make(uint64_t tag, std::byte* data, size_t bytes) {
    auto* request = pool_.take();
    if (!request) return nullptr;
    request->tag = tag;
    request->data = data;
    request->capacity = bytes;
    request->late = worker_.delay();
    return request;
  }

  bool may_move(LoopbackRequest& request, const Memory* memory) {
    if (memory != nullptr || request.capacity == 0 || takes_any_memory()) return true;
    request.failure = "the memory is not registered";
    std::lock_guard lock(connection_->mutex);
    mine().matched.push_back(&request);
    return false;
  }

  template <class Copy>
  void meet(LoopbackRequest& request, Requests Side::*own, Requests Side::*other, Copy copy_bytes) {
    std::lock_guard lock(connection_->mutex);
    if (auto* match = take_match(peer().*other, request.tag)) {
      copy_bytes(request, *match);
      mine().matched.push_back(&request);
      peer().matched.push_back(match);
    } else if (peer().closed) {
      request.failure = peer_closed;
      mine().matched.push_back(&request);
    } else {
      (mine().*own).push_back(&request);
    }
  }

  PostedLoopbackWorker& worker_;
  std::shared_ptr<Connection> connection_;
  size_t side_;
  Pool<LoopbackRequest> pool_;
  Requests late_;  // matched, still to be shown as done
  std::unique_ptr<PostedFifo> fifo_;
};

unsigned PostedLoopbackEndpoint::progress() {
  {
    std::lock_guard lock(connection_->mutex);
    late_.insert(late_.end(), mine().matched.begin(), mine().matched.end());
    mine().matched.clear();
  }
  return static_cast<unsigned>(std::erase_if(late_, [](LoopbackRequest* request) {
    if (request->late == 0) return request->done = true;
    --request->late;
    return false;
  }));
}

class PostedLoopbackListener final : public Listener {
 public:
  explicit PostedLoopbackListener(PostedLoopbackWorker& worker) : worker_(worker), backlog_(std::make_shared<Backlog>()) {
    std::lock_guard lock(backlogs().mutex);
    address_ = fmt::format("posted-loopback:{}", backlogs().next++);
    backlogs().listeners.emplace(address_, backlog_);
  }
  ~PostedLoopbackListener() override {
    std::lock_guard lock(backlogs().mutex);
    backlogs().listeners.erase(address_);
  }
  std::string address() const override { return address_; }
  Result<std::unique_ptr<Endpoint>> accept() override {
    std::lock_guard lock(backlog_->mutex);
    auto& waiting = backlog_->waiting;
    if (waiting.empty()) return std::unique_ptr<Endpoint>();
    auto connection = std::move(waiting.front());
    waiting.erase(waiting.begin());
    auto endpoint = worker_.add(connection, 1);
    connection->accepted = true;
    return endpoint;
  }

 private:
  PostedLoopbackWorker& worker_;
  std::shared_ptr<Backlog> backlog_;  // shared with whoever connects at this moment
  std::string address_;
};

Result<std::unique_ptr<Listener>> PostedLoopbackWorker::listen() {
  return std::unique_ptr<Listener>(std::make_unique<PostedLoopbackListener>(*this));
}

Result<std::unique_ptr<Endpoint>> PostedLoopbackWorker::connect(std::string_view address, std::string_view hello) {
  std::shared_ptr<Backlog> backlog;
  {
    std::lock_guard lock(backlogs().mutex);
    const auto it = backlogs().listeners.find(address);
    if (it == backlogs().listeners.end()) return Error{Code::invalid_argument, fmt::format("nobody listens at '{}'", address)};
    backlog = it->second;
  }
  auto connection = std::make_shared<Connection>();
  connection->hello = hello;
  auto endpoint = add(connection, 0);
  std::lock_guard lock(backlog->mutex);
  backlog->waiting.push_back(std::move(connection));
  return endpoint;
}

std::unique_ptr<Endpoint> PostedLoopbackWorker::add(std::shared_ptr<Connection> connection, size_t side) {
  auto endpoint = std::make_unique<PostedLoopbackEndpoint>(*this, std::move(connection), side);
  endpoints_.push_back(endpoint.get());
  return endpoint;
}

unsigned PostedLoopbackWorker::progress() {
  unsigned count = 0;
  for (auto* endpoint : endpoints_) count += endpoint->progress();
  return count;
}

}  // namespace

Result<std::unique_ptr<Worker>> open_posted_loopback_worker(Slots slots, uint32_t seed, bool any_memory) {
  return std::unique_ptr<Worker>(std::make_unique<PostedLoopbackWorker>(slots, seed, any_memory));
}

}  // namespace gyre::transport
