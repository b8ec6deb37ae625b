// The sender's side of a connection that is being made: each call of connect makes what steps can be made and says where it stands.
#pragma once
#include <atomic>

#include "plugin/comm.h"

namespace gyre::plugin {

class Connecting {
 public:
  Connecting(std::shared_ptr<Group>, const HandleContent&, Handle, std::chrono::seconds silence);
  ~Connecting();
  Connecting(const Connecting&) = delete;
  Connecting& operator=(const Connecting&) = delete;

  /// The connection, once; null: not yet. With the group's turn.
  Result<std::unique_ptr<Comm>> step();
  const std::shared_ptr<Group>& group() { return group_; }
  /// Whether it was begun with these very bytes, not with a copy of them.
  bool is_of(Handle handle) const { return handle.data() == handle_; }
  uint64_t number() const { return number_; }
  /// When NCCL last asked: after an abort it never will again. By any thread, without the group's turn.
  std::chrono::steady_clock::time_point asked_at() const { return asked_at_.load(std::memory_order_relaxed); }

 private:
  enum class State : uint8_t { greets, asks, joins, done };

  Status take(const Frame&);
  Status take_offer(std::string_view);
  Status take_address(std::string_view);
  Status take_refusal(std::string_view);
  Status next_way(const std::string& why);
  void reconnect();
  Error failed(const std::string& why) const;

  std::shared_ptr<Group> group_;  // shared: a connection in the making keeps its group
  const HandleContent content_;
  const std::byte* const handle_;
  const std::chrono::seconds silence_;
  const uint64_t number_;
  State state_ = State::greets;
  Control control_;
  std::string peer_;
  std::vector<WayKind> ways_;  // to be tried, the next one last
  WayKind way_ = WayKind::network;
  std::string refusals_;
  std::unique_ptr<transport::Endpoint> endpoint_;
  std::atomic<std::chrono::steady_clock::time_point> asked_at_ = std::chrono::steady_clock::now();
  std::chrono::steady_clock::time_point retry_at_{};
  std::optional<std::chrono::steady_clock::time_point> refused_at_;  // first
};

}  // namespace gyre::plugin
