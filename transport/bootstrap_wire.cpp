#include "transport/bootstrap_wire.h"

#include <fmt/format.h>
#include <linux/sockios.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "transport/bootstrap_socket.h"
#include "transport/bootstrap_text.h"

namespace gyre::transport::bootstrap {
namespace {

constexpr size_t header_bytes = 5;
// Less than any receive window starts with: so little is acknowledged even for a stopped process.
constexpr size_t patient_from_bytes = 16 * 1024;
constexpr size_t read_bytes = 64 * 1024;

bool try_again(int error) { return error == EAGAIN || error == EWOULDBLOCK || error == EINTR; }

std::array<char, header_bytes> header_of(const Message& message) {
  std::array<char, header_bytes> header;
  const auto length = static_cast<uint32_t>(message.payload.size());
  std::memcpy(header.data(), &length, sizeof length);
  header[4] = static_cast<char>(message.kind);
  return header;
}

// Moves the whole messages at the front of `bytes` to `messages`; false when a length is out of bounds.
bool split(std::string& bytes, std::vector<Message>& messages) {
  std::string_view rest = bytes;
  while (rest.size() >= header_bytes) {
    std::string_view body = rest;
    const size_t length = *take<uint32_t>(body);
    if (length > max_payload) return false;
    if (body.size() < 1 + length) break;
    messages.push_back({static_cast<Kind>(body[0]), std::string(body.substr(1, length))});
    rest = body.substr(1 + length);
  }
  bytes.erase(0, bytes.size() - rest.size());
  return true;
}

}  // namespace

Process Process::self() {
  Process process;
  process.pid = static_cast<uint32_t>(::getpid());
  if (::gethostname(process.host.data(), process.host.size()) != 0) process.host[0] = '?';
  process.host.back() = '\0';
  return process;
}

std::string Process::text(Rank rank) const {
  const auto end = std::find(host.begin(), host.end(), '\0');
  return fmt::format("rank {} (host {}, pid {})", rank, std::string(host.begin(), end), pid);
}

Connection::Connection(PrivateFd fd) : fd_(std::move(fd)) {}

void Connection::close() {
  PrivateFd closing = std::move(fd_);
  unsent_.clear();
  patient_ = false;
}

void Connection::shut_down() const { ::shutdown(fd(), SHUT_WR); }

void Connection::send(SharedMessage message) {
  if (!open()) return;
  if (message->payload.size() > patient_from_bytes && !patient_) {
    patient_ = true;
    limit_silence(fd(), false);
  }
  unsent_.push_back(std::move(message));
}

bool Connection::flush() {
  bool any = false;
  while (open() && !unsent_.empty()) {
    const Message& message = *unsent_.front();
    std::array<char, header_bytes> header = header_of(message);
    const size_t header_sent = std::min(front_sent_, header_bytes);
    const size_t payload_sent = front_sent_ - header_sent;
    std::array<iovec, 2> pieces{};
    pieces[0] = {header.data() + header_sent, header_bytes - header_sent};
    pieces[1] = {const_cast<char*>(message.payload.data()) + payload_sent, message.payload.size() - payload_sent};
    msghdr out{};
    out.msg_iov = pieces.data();
    out.msg_iovlen = pieces.size();
    const ssize_t sent = ::sendmsg(fd(), &out, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0) {
      if (!try_again(errno)) unsent_.clear(), front_sent_ = 0;
      break;
    }
    any = true;
    front_sent_ += static_cast<size_t>(sent);
    if (front_sent_ < header_bytes + message.payload.size()) continue;
    unsent_.pop_front();
    front_sent_ = 0;
  }
  return any;
}

std::optional<std::string> Connection::receive(std::vector<Message>& messages) {
  std::array<char, read_bytes> piece;
  for (;;) {
    const ssize_t got = ::recv(fd(), piece.data(), piece.size(), MSG_DONTWAIT);
    const int error = got < 0 ? errno : 0;
    if (got < 0 && try_again(error)) return std::nullopt;
    if (got == 0 || error == ECONNRESET || error == EPIPE) return "its connection closed";
    if (got < 0) return "its connection failed: " + errno_text(error);
    arrived_.append(piece.data(), static_cast<size_t>(got));
    if (!split(arrived_, messages)) return "its connection brought what is no message of ours";
    if (static_cast<size_t>(got) < piece.size()) return std::nullopt;
  }
}

bool Connection::patient() {
  if (!patient_ || !open() || has_unsent()) return patient_;
  int unacknowledged = 0;
  if (::ioctl(fd(), SIOCOUTQ, &unacknowledged) == 0 && unacknowledged > 0) return true;
  patient_ = false;
  limit_silence(fd(), true);
  return false;
}

}  // namespace gyre::transport::bootstrap
