// The verbs backend's Worker, Listener and Endpoint. Private to transport/verbs/. How two ends meet, in frames (transport/control.h):
//
//   connecting end                          accepting end
//   hello (cookie, geometry, hello, card)
//                                           makes and joins its queue pairs
//                                           reply (card), or refusal (why)
//   joins its queue pairs
//   joined                                  ready
//   ready
//                  either, in the end: goodbye
#pragma once
#include <chrono>
#include <deque>

#include "transport/control.h"
#include "transport/posted_fifo.h"
#include "transport/verbs.h"
#include "transport/verbs/link.h"

namespace gyre::transport::verbs {

enum class Word : uint32_t { hello = 1, reply, refusal, joined, goodbye };

class VerbsEndpoint;

class VerbsWorker final : public Worker {
 public:
  static Result<std::unique_ptr<Worker>> open(Slots, const VerbsWay&);
  VerbsWorker(Slots slots, VerbsWay way) : slots_(slots), way_(std::move(way)) {}

  Result<std::unique_ptr<Listener>> listen() override;
  Result<std::unique_ptr<Endpoint>> connect(std::string_view address, std::string_view hello) override;
  /// Of the host only.
  Result<std::unique_ptr<Memory>> register_memory(std::span<std::byte>, MemoryKind) override;
  unsigned progress() override;
  const Error* failure() const override { return failure_ ? &*failure_ : nullptr; }

  Slots slots() const { return slots_; }
  const VerbsWay& way() const { return way_; }
  uint32_t paths_per_rail() const { return paths_per_rail_; }
  std::span<Rail* const> rails() const { return rails_; }
  void record(const Error& error) {
    if (!failure_) failure_ = error;
  }
  void add(VerbsEndpoint* endpoint) { endpoints_.push_back(endpoint); }
  void remove(VerbsEndpoint* endpoint) { std::erase(endpoints_, endpoint); }
  /// What has come to the devices is seen.
  void drain();
  /// An endpoint has something to look at.
  void note() { noted_ = true; }

 private:
  Slots slots_;
  VerbsWay way_;
  uint32_t paths_per_rail_ = 1;
  std::vector<std::unique_ptr<Rail>> opened_;
  std::vector<Rail*> rails_;
  std::vector<VerbsEndpoint*> endpoints_;
  uint32_t calls_ = 0;
  bool noted_ = false;
  std::optional<Error> failure_;
};

class VerbsEndpoint final : public Endpoint {
 public:
  /// Connecting: to a listener's address, with its cookie.
  static Result<std::unique_ptr<Endpoint>> connect(VerbsWorker&, const SocketAddress&, const Cookie&, std::string_view hello);
  /// Accepting: a peer that has said this hello, whose cookie is right.
  static Result<std::unique_ptr<Endpoint>> accept(VerbsWorker&, Control, std::string_view hello);
  VerbsEndpoint(VerbsWorker& worker, Control control);
  ~VerbsEndpoint() override;

  Result<bool> ready() override;
  std::string_view hello() const override { return hello_; }
  Fifo& fifo() override;
  Request* send(uint64_t tag, std::span<const std::byte>, const Memory*) override;
  Request* receive(uint64_t tag, std::span<std::byte>, const Memory*) override;
  void release(Request* request) override { link_->release(request); }
  bool takes_any_memory() const override { return false; }
  void start_close() override;
  bool closed() override;
  void break_off(const char* reason) override;
  const char* failure() const override { return error_ ? error_->what.c_str() : nullptr; }

  /// Hears what the peer says, and what has become of the connection.
  void look();
  bool connected() const { return state_ == State::connected; }

 private:
  enum class State : uint8_t { awaits_reply, awaits_joined, connected, failed };
  Status take(const Frame&);
  Status take_hello(std::string_view);
  void fail(Error);
  Status open_link();
  std::string hello_frame(const Cookie&) const;

  VerbsWorker& worker_;
  Control control_;
  State state_ = State::awaits_reply;
  std::string hello_;
  std::unique_ptr<Link> link_;
  std::unique_ptr<PostedFifo> fifo_;
  std::optional<Error> error_;
  bool closing_ = false, said_goodbye_ = false, peer_left_ = false;
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
