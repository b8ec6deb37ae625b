#include "transport/tcp/fifo.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>

#include <cerrno>

#include "base/text.h"
#include "transport/tcp/socket.h"
#include "transport/tcp/traffic.h"

namespace gyre::transport::tcp {
namespace {

// A process that ends with messages unread resets its connections.
std::string what_ended(int error) {
  const bool closed = error == ECONNRESET || error == EPIPE;
  return closed ? "its process or host closed the connection (" + errno_text(error) + ")" : errno_text(error);
}

}  // namespace

TcpFifo::TcpFifo(PrivateFd fd, const Slots& slots, std::string peer, Traffic& traffic)
    : fd_(std::move(fd)), slot_bytes_(slots.bytes), peer_(std::move(peer)), traffic_(traffic), outgoing_(slots), incoming_(slots) {
  traffic_.add(*this);
}

TcpFifo::~TcpFifo() { traffic_.remove(*this); }

bool TcpFifo::fits(size_t bytes) {
  if (bytes > slot_bytes_) [[unlikely]]
    fail(fmt::format("a message of {} bytes does not fit a slot of {}", bytes, slot_bytes_));
  return !failure_;
}

std::byte* TcpFifo::reserve(size_t bytes) { return fits(bytes) && outgoing_.room() ? outgoing_.slot() : nullptr; }

void TcpFifo::commit(uint64_t plan, size_t bytes) {
  outgoing_.add(plan, bytes);
  added();
}

bool TcpFifo::send_from(uint64_t plan, const std::byte* data, size_t bytes) {
  if (!fits(bytes) || !outgoing_.room()) return false;
  outgoing_.add(plan, data, bytes);
  added();
  return true;
}

// Where others wait already, the kernel has just refused them.
void TcpFifo::added() {
  if (!queued && write()) return;
  traffic_.queue(*this);
}

bool TcpFifo::expect(uint64_t plan, std::byte* destination, size_t bytes) {
  if (!fits(bytes) || !incoming_.expect(plan, destination, bytes)) return false;
  traffic_.await(*this);
  return true;
}

Arrival TcpFifo::front() {
  const Arrival arrival = incoming_.front();
  if (arrival.data != nullptr || !incoming_.awaits()) return arrival;
  asked = true;
  return read() ? incoming_.front() : Arrival{};
}

void TcpFifo::pop() {
  incoming_.pop();
  traffic_.moved();
}

bool TcpFifo::read() {
  if (failure_) [[unlikely]]
    return false;
  Incoming::Outcome outcome;
  if (!ended_) outcome = incoming_.read(fd_.get());
  if (outcome.ended) [[unlikely]]
    end(outcome);
  // Whoever is done may close; a failure it is where something is still to come.
  if (ended_ && incoming_.awaits()) [[unlikely]]
    fail(why_);
  return outcome.moved || !incoming_.awaits();
}

void TcpFifo::end(const Incoming::Outcome& outcome) {
  ended_ = true;
  const Header& header = incoming_.refused();
  if (outcome.strange) {
    fail(fmt::format("what came is no message: magic {:#x}, {} bytes, slots have {}", header.magic, header.bytes, slot_bytes_));
  } else if (outcome.goodbye) {
    why_ = "the peer closed the connection";
  } else if (outcome.error != 0) {
    fail(what_ended(outcome.error));
  } else {
    fail("its process or host closed the connection");
  }
}

bool TcpFifo::write() {
  if (failure_) [[unlikely]]
    return true;
  const int error = outgoing_.write(fd_.get());
  if (error != 0) [[unlikely]] {
    // What came before can say it better: that the peer was done, or what it was that came.
    if (!ended_) read();
    fail(ended_ && !why_.empty() ? why_ : what_ended(error));
  }
  return !outgoing_.waiting() || failure_;
}

void TcpFifo::look_at_host(std::chrono::seconds silence) {
  if (!failure_ && silent(fd_.get(), silence)) fail(fmt::format("its host has not answered for {} s", silence.count()));
}

void TcpFifo::fail(std::string_view why) {
  if (failure_) return;
  failure_.emplace(Code::remote, fmt::format("connection to {}: {}", peer_, why));
  traffic_.record(*failure_);
}

void TcpFifo::break_off(std::string_view reason) {
  fail(reason);
  ::shutdown(fd_.get(), SHUT_RDWR);
}

void TcpFifo::say_goodbye(std::chrono::milliseconds limit) {
  const auto end = std::chrono::steady_clock::now() + limit;
  while (!write()) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - std::chrono::steady_clock::now());
    pollfd waits{fd_.get(), POLLOUT, 0};
    if (left.count() <= 0 || ::poll(&waits, 1, static_cast<int>(left.count())) <= 0) return;
  }
  if (failure_) return;
  const Header goodbye{goodbye_magic, 0, 0};
  // A socket that is so full that it does not take these bytes has a peer that does not read them either.
  (void)::send(fd_.get(), &goodbye, sizeof goodbye, MSG_NOSIGNAL | MSG_DONTWAIT);
}

}  // namespace gyre::transport::tcp
