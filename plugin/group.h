// The Workers of one communicator on one device, at most one for each way to a peer, and what its connections share: whose turn it is,
// the sockets by which peers are watched, the farewells that are not over. A communicator is known by NCCL's context and its Service
// thread (before table version 11 there is only that), so communicators share nothing, and no lock.
//
// All but `turn` and memory() is used by who has the turn. Shared between its connections: the last one that closes ends it.
#pragma once
#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <memory>
#include <thread>
#include <vector>

#include "base/unique.h"
#include "plugin/memory.h"
#include "plugin/provider.h"
#include "plugin/turn.h"

namespace gyre::plugin {

class Process;

struct GroupKey {
  const Context* context;
  int device;
  std::thread::id thread;
  bool operator==(const GroupKey&) const = default;
};

class Group {
 public:
  Group(Process&, GroupKey, std::vector<transport::NetDevice> members);
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;
  /// Sees farewells out, for a second at most.
  ~Group();

  Turn turn;
  const GroupKey key;
  Process& process() { return process_; }
  const std::vector<transport::NetDevice>& members() const { return members_; }
  /// Of a fused device all members', joined.
  std::string device_name() const;
  const Identity& identity() const { return identity_; }
  const std::vector<Way>& ways() const { return ways_; }
  std::string_view name_of(WayKind) const;
  /// What there is to say of it, as what follows its name: ": ", or nothing.
  std::string why(WayKind) const;

  /// Opened when first asked for.
  Result<transport::Worker*> worker(WayKind);
  bool stopped(WayKind kind) const {
    const auto& worker = workers_[static_cast<size_t>(kind)];
    return worker && worker->stopped();
  }
  /// For the thread of its key.
  bool any_stopped() const {
    return std::any_of(workers_.begin(), workers_.end(), [](const auto& worker) { return worker && worker->stopped(); });
  }
  MemoryCache& memory() { return memory_; }

  /// How often it was called: whoever finds the same number twice finds it idle.
  uint64_t calls() const { return calls_.load(std::memory_order_relaxed); }
  void count_call() { calls_.store(calls() + 1, std::memory_order_relaxed); }
  /// For the caretaker, the calls that it saw last.
  uint64_t seen_calls = 0;

  [[gnu::always_inline]] void progress() {
    for (transport::Worker* worker : opened_) worker->progress();
    if (!waiting_.empty()) hand_over();
  }
  /// It has sends that wait to be handed to its endpoint.
  void add_waiting(Comm& comm) { waiting_.push_back(&comm); }
  /// Instead of waiting: now and then looks at everything that nobody asks for.
  void idle() {
    if (++idle_calls_ % calls_between_looks == 0) [[unlikely]]
      look_around();
  }

  void watch(Comm&);
  /// Its socket has nothing more to say.
  void unwatch(Comm&);
  /// It is being destroyed.
  void forget(Comm&);
  /// Takes over an endpoint, and sees its farewell out unless it is broken.
  void retire(std::unique_ptr<transport::Endpoint> endpoint) {
    endpoint->start_close();
    retired_.push_back(std::move(endpoint));
  }

 private:
  static constexpr uint32_t calls_between_looks = 64;
  void hand_over();
  void look_around();
  void look_at_peers();
  void bury();

  Process& process_;
  std::vector<transport::NetDevice> members_;
  Identity identity_;
  std::vector<Way> ways_;
  std::array<std::unique_ptr<transport::Worker>, way_kinds> workers_;
  std::vector<transport::Worker*> opened_;  // of these
  std::vector<std::unique_ptr<transport::Endpoint>> retired_;
  MemoryCache memory_;  // before the workers, whose memory it is
  UniqueFd watch_;      // epoll
  std::vector<Comm*> comms_, waiting_;
  std::chrono::steady_clock::time_point looked_{};
  uint32_t idle_calls_ = 0;
  std::atomic<uint64_t> calls_{1};
};

}  // namespace gyre::plugin
