// A Fifo over a connected TCP socket. There are no credits to come back: what the kernel does not take stays with the sender, at most
// `credits` messages, and what was not announced stays in the socket. So `credits` messages can be under way without the receiver's help,
// whatever the sizes of the socket's buffers. front() asks the socket of the peer that is waited for, and Traffic the others.
#pragma once
#include <poll.h>

#include <chrono>
#include <optional>
#include <string>

#include "transport/private_fd.h"
#include "transport/tcp/incoming.h"

namespace gyre::transport::tcp {

class Traffic;

class TcpFifo final : public Fifo {
 public:
  /// Of a greeted connection. `peer` names it in errors. The traffic must outlive it.
  TcpFifo(PrivateFd, const Slots&, std::string peer, Traffic&);
  ~TcpFifo() override;

  bool direct() const override { return true; }
  std::byte* reserve(size_t bytes) override;
  void commit(uint64_t plan, size_t bytes) override;
  bool send_from(uint64_t plan, const std::byte* data, size_t bytes) override;
  uint64_t sent() const override { return outgoing_.sent(); }
  uint64_t completed() override { return outgoing_.taken(); }
  bool expect(uint64_t plan, std::byte* destination, size_t bytes) override;
  Arrival front() override;
  void pop() override;

  /// Why nothing more will come or go, or null.
  const Error* failure() const { return failure_ ? &*failure_ : nullptr; }
  const std::string& peer() const { return peer_; }
  /// What comes from now on is dropped, and nothing is a failure any more. Sends a goodbye after what waits, within `limit`.
  void say_goodbye(std::chrono::milliseconds limit);
  /// Without one: what is under way fails for this reason.
  void break_off(std::string_view reason);

  // For Traffic.
  bool awaits() const { return incoming_.awaits() && !failure_; }
  bool awaited = false;  ///< it is on Traffic's list of those that wait for messages
  bool queued = false;   ///< and of those that have some to send
  bool asked = false;    ///< by front(), since Traffic saw it last
  bool read();
  bool write();
  /// For poll(); no events: nothing is under way.
  pollfd waits() const { return {fd_.get(), static_cast<short>((awaits() ? POLLIN : 0) | (queued ? POLLOUT : 0)), 0}; }
  /// Whether the peer's host has not answered the kernel for so long, although it should have.
  void look_at_host(std::chrono::seconds silence);

 private:
  void added();
  void end(const Incoming::Outcome&);
  void fail(std::string_view why);
  bool fits(size_t bytes);

  PrivateFd fd_;
  const size_t slot_bytes_;
  std::string peer_;
  Traffic& traffic_;
  Outgoing outgoing_;
  Incoming incoming_;
  bool ended_ = false;  // nothing more will come, which is a failure where something is owed
  std::string why_;
  std::optional<Error> failure_;
};

}  // namespace gyre::transport::tcp
