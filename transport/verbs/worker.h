// The verbs backend's Worker, Listener and Endpoint. Private to transport/verbs/. How two ends meet, in frames (transport/control.h):
//
//   connecting end                          accepting end
//   hello (cookie, geometry, hello, card)
//                                           makes and joins its queue pairs
//                                           reply (card), or refusal (why)
//   joins its queue pairs
//   joined                                  ready
//   ready
//           either, in the end: goodbye, or that it comes by the paths, behind what is still under way there
#pragma once
#include <algorithm>
#include <chrono>
#include <deque>

#include "transport/control.h"
#include "transport/posted_fifo.h"
#include "transport/verbs.h"
#include "transport/verbs/flush.h"
#include "transport/verbs/link.h"
#include "transport/verbs/registrations.h"

namespace gyre::transport::verbs {

enum class Word : uint32_t { hello = 1, reply, refusal, joined, goodbye, goodbye_by_paths, failed };

/// What one end has and wants, which both must know before they make queue pairs.
struct Offer {
  uint64_t slot_bytes = 0;
  uint32_t credits = 0;
  uint32_t rails = 1, pairs = 1, confirms = 0;
};

class VerbsEndpoint;

class VerbsWorker final : public Worker {
 public:
  static Result<std::unique_ptr<Worker>> open(Slots, const VerbsWay&);
  VerbsWorker(Slots slots, VerbsWay way) : slots_(slots), way_(std::move(way)) {}

  Result<std::unique_ptr<Listener>> listen() override;
  Result<std::unique_ptr<Endpoint>> connect(std::string_view address, std::string_view hello) override;
  Result<std::unique_ptr<Memory>> register_memory(std::span<std::byte>, MemoryKind) override;
  Result<std::unique_ptr<Memory>> register_dmabuf(std::span<std::byte>, const DmaBuf&) override;
  Status moves_gpu_memory() const override;
  Result<Request*> flush(const Memory&, const std::byte* data) override;
  void release_flush(Request* request) override { flushes_->release(request); }
  unsigned progress() override;
  const Error* failure() const override { return failure_ ? &*failure_ : nullptr; }

  Slots slots() const { return slots_; }
  Offer offer() const;
  const VerbsWay& way() const { return way_; }
  uint32_t pairs() const { return pairs_; }
  std::span<Rail* const> rails() const { return rails_; }
  /// "mlx5_0:1 (100000 Mbit/s, RoCE v2 10.0.0.1, index 3), …"
  std::string describe_rails() const;
  void record(const Error& error) {
    if (!failure_) failure_ = error;
  }
  void add(VerbsEndpoint* endpoint) {
    endpoints_.push_back(endpoint);
    unsettle(endpoint);
  }
  void remove(VerbsEndpoint* endpoint) {
    std::erase(endpoints_, endpoint);
    std::erase(unsettled_, endpoint);
  }
  /// It is to be looked at each time.
  void unsettle(VerbsEndpoint* endpoint) {
    if (std::find(unsettled_.begin(), unsettled_.end(), endpoint) == unsettled_.end()) unsettled_.push_back(endpoint);
  }
  /// What has come to the devices is seen.
  void drain();
  /// Who carries on when no path is left; null: nobody.
  Worker* fallback() const { return fallback_.get(); }
  bool fallback_takes_cuda() const;
  /// Where peers reach it; empty: nowhere.
  std::string fallback_address() const { return fallback_listener_ ? fallback_listener_->address() : ""; }
  /// The connection that greets with this, when it has come.
  std::unique_ptr<Endpoint> take_fallback(std::string_view hello);
  /// An endpoint has something to look at.
  void note() { noted_ = true; }

 private:
  Status open_fallback();
  unsigned progress_fallback();
  void hear_devices();
  void see_to_unsettled();

  Slots slots_;
  VerbsWay way_;
  std::unique_ptr<Worker> fallback_;
  std::unique_ptr<Listener> fallback_listener_;
  std::vector<std::unique_ptr<Endpoint>> fallback_arrivals_;
  uint32_t pairs_ = 1;
  std::vector<std::unique_ptr<Rail>> opened_;
  std::vector<Rail*> rails_;
  std::optional<Registrations> registrations_;  // over the rails, once they are there
  std::optional<Flushes> flushes_;
  std::vector<VerbsEndpoint*> endpoints_, unsettled_;
  uint32_t calls_ = 0;
  bool noted_ = false;
  std::optional<Error> failure_;
};

class VerbsEndpoint final : public Endpoint {
 public:
  /// Connecting: to a listener's address, with its cookie.
  static Result<std::unique_ptr<Endpoint>> connect(VerbsWorker&, const SocketAddress&, const Cookie&, const Offer& peers,
                                                   std::string_view fallback_address, std::string_view hello);
  /// Accepting: a peer that has said this hello, whose cookie is right.
  static Result<std::unique_ptr<Endpoint>> accept(VerbsWorker&, Control, std::string_view hello);
  VerbsEndpoint(VerbsWorker& worker, Control control);
  ~VerbsEndpoint() override;

  Result<bool> ready() override;
  std::string_view hello() const override { return hello_; }
  Fifo& fifo() override;
  Request* send(uint64_t tag, std::span<const std::byte>, const Memory*) override;
  Request* receive(uint64_t tag, std::span<std::byte> data, const Memory* memory) override { return receive(tag, data, memory, {}); }
  Request* receive(uint64_t tag, std::span<std::byte>, const Memory*, Group) override;
  void release(Request* request) override { link_->release(request); }
  size_t receive_room() const override { return state_ == State::connected ? link_->receive_room() : 0; }
  bool takes_any_memory() const override { return false; }
  bool outlives_tcp() const override { return link_ && (link_->paths() > 1 || link_->detour()); }
  bool sends_await_receives() const override { return true; }
  void start_close() override;
  bool closed() override;
  void break_off(const char* reason) override;
  void let_go() override;
  const char* failure() const override { return error_ ? error_->what.c_str() : nullptr; }

  /// Hears what the peer says, and what has become of the connection.
  void look();
  /// Only what its paths say.
  void look_at_link();
  Link* link() { return link_.get(); }
  bool connected() const { return state_ == State::connected; }
  bool needs_fallback() const { return !detours_name_.empty() && (!connected() || link_->alive() == 0); }
  bool has_news() const { return connected() && link_->has_news(); }
  bool closing() const { return closing_; }
  /// Neither being made nor being closed.
  bool settled() const { return connected() && !closing_; }

 private:
  enum class State : uint8_t { awaits_reply, awaits_joined, awaits_paths, connected, failed };
  Status hear();
  Status take(const Frame&);
  Status take_hello(std::string_view);
  void await_paths();
  void look_for_paths();
  void lose(Error);
  void fail(Error);
  Status open_link(const Offer& peers);
  std::string hello_frame(const Cookie&) const;

  VerbsWorker& worker_;
  Control control_;
  State state_ = State::awaits_reply;
  std::string hello_, farewell_;
  std::string detours_name_;  // with which the connection over the fallback greets; empty: there is none
  std::unique_ptr<Link> link_;
  std::unique_ptr<PostedFifo> fifo_;
  std::optional<Error> error_;
  bool closing_ = false, said_goodbye_ = false, peer_left_ = false;
  bool silent_ = false;  // the TCP connection is lost, and the paths are not
};

class VerbsListener final : public Listener {
 public:
  VerbsListener(VerbsWorker& worker, ListeningSocket socket) : worker_(worker), socket_(std::move(socket)) { fill_random(cookie_); }
  std::string address() const override;
  Result<std::unique_ptr<Endpoint>> accept() override;

 private:
  struct Arrival {
    Control control;
    std::chrono::steady_clock::time_point since;
  };
  VerbsWorker& worker_;
  ListeningSocket socket_;
  Cookie cookie_{};
  std::deque<Arrival> arrivals_;  // that have not said hello
};

}  // namespace gyre::transport::verbs
