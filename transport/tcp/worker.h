// The TCP backend's Worker, Listener and Endpoint. Private to transport/tcp.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "transport/tcp/fifo.h"
#include "transport/tcp/socket.h"
#include "transport/tcp/traffic.h"

namespace gyre::transport::tcp {

struct Options {
  std::chrono::seconds silence{5};  ///< after which a host that does not answer is lost
  int buffer_bytes = 0;             ///< of a socket in each direction; 0: what slots need, or the system's choice, which grows with need
};

class TcpWorker final : public Worker {
 public:
  TcpWorker(Slots slots, std::vector<SocketAddress> addresses, Options options)
      : slots_(slots), addresses_(std::move(addresses)), options_(options), traffic_(options.silence) {}

  Result<std::unique_ptr<Listener>> listen() override;
  Result<std::unique_ptr<Endpoint>> connect(std::string_view address, std::string_view hello) override;
  Result<std::unique_ptr<Memory>> register_memory(std::span<std::byte>, MemoryKind) override { return std::make_unique<Memory>(); }
  unsigned progress() override { return traffic_.progress(); }
  bool arm(std::vector<pollfd>& awaited) override {
    traffic_.arm(awaited);
    return true;
  }
  bool polls_by_kernel() const override { return true; }
  void abandon() override { abandoned_ = true; }
  const Error* failure() const override { return traffic_.failure(); }

  bool abandoned() const { return abandoned_; }
  const Slots& slots() const { return slots_; }
  const Options& options() const { return options_; }
  Traffic& traffic() { return traffic_; }

 private:
  Slots slots_;
  std::vector<SocketAddress> addresses_;
  Options options_;
  Traffic traffic_;
  bool abandoned_ = false;
};

/// Who connects tries one address after the other, until one has answered its greeting.
class TcpEndpoint final : public Endpoint {
 public:
  TcpEndpoint(TcpWorker& worker, Card card, std::string_view hello);
  /// Of a greeting with the right cookie.
  TcpEndpoint(TcpWorker& worker, PrivateFd, const Greeting&);
  ~TcpEndpoint() override;

  Result<bool> ready() override;
  std::string_view hello() const override { return hello_; }
  /// Once ready.
  Fifo& fifo() override { return *fifo_; }
  const char* failure() const override { return fifo_ && fifo_->failure() ? fifo_->failure()->what.c_str() : nullptr; }
  void break_off(const char* reason) override;

 private:
  enum class State : uint8_t { connects, awaits_answer, connected, failed };

  void try_next();
  void give_up(const std::string& why);
  void greet();
  void take_answer();
  void settle(const Slots& peer);
  Result<bool> fail(Error);

  TcpWorker& worker_;
  Card card_;  // of the listener
  std::string hello_, peer_, tried_;
  size_t place_ = 0;  // of the card, that is being tried
  std::chrono::steady_clock::time_point since_{};
  State state_ = State::connects;
  PrivateFd fd_;  // until it is the fifo's
  Answer answer_;
  size_t answered_ = 0;  // bytes of it
  std::optional<Error> error_;
  std::unique_ptr<TcpFifo> fifo_;
};

class TcpListener final : public Listener {
 public:
  TcpListener(TcpWorker&, std::vector<ListeningSocket>);
  std::string address() const override;
  Result<std::unique_ptr<Endpoint>> accept() override;

 private:
  struct Arrival {
    PrivateFd fd;
    std::chrono::steady_clock::time_point since;
    Greeting greeting;
    size_t bytes = 0;  // of it
  };
  Status take_arrivals(std::chrono::steady_clock::time_point now);
  bool read(Arrival&) const;
  bool greeted(const Arrival&) const;

  TcpWorker& worker_;
  std::vector<ListeningSocket> sockets_;
  Cookie cookie_{};
  std::vector<Arrival> arrivals_;  // that have not said all, the oldest first
};

/// "10.0.0.1:4711", of the other side; "?" where it has gone.
std::string peer_of(int fd);

}  // namespace gyre::transport::tcp
