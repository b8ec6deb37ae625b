#include "transport/pmi.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "base/text.h"
#include "base/unique.h"

namespace gyre::transport {
namespace {

using Clock = std::chrono::steady_clock;
constexpr size_t longest_line = 4096;

Error broken(std::string_view text) {
  return Error{Code::system, fmt::format("PMI: {}; GYRE_ROOT=host:port of rank 0 does without", text)};
}
/// The value of `key=` in a line of words; empty when it has none.
std::string_view value_of(std::string_view line, std::string_view key) {
  while (!line.empty()) {
    const std::string_view word = line.substr(0, line.find(' '));
    if (word.size() > key.size() && word.starts_with(key) && word[key.size()] == '=') return word.substr(key.size() + 1);
    line.remove_prefix(std::min(line.size(), word.size() + 1));
  }
  return {};
}

class Pmi {
 public:
  Pmi(int fd, Clock::time_point deadline) : fd_(fd), deadline_(deadline) {}

  /// Sends a command; its reply, which must be `expected` without a failure.
  Result<std::string> ask(const std::string& command, std::string_view expected);

 private:
  Result<std::string> read_line();

  int fd_;
  Clock::time_point deadline_;
};

// Byte by byte: what follows the line is not ours, and this is a few hundred bytes in a job.
Result<std::string> Pmi::read_line() {
  std::string line;
  while (line.size() < longest_line) {
    pollfd readable{fd_, POLLIN, 0};
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline_ - Clock::now()).count();
    const int ready = ::poll(&readable, 1, static_cast<int>(std::max<long>(left, 0)));
    if (ready == 0) return broken("no answer from mpirun in time");
    char c = 0;
    const ssize_t got = ready < 0 ? -1 : ::read(fd_, &c, 1);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return broken("cannot read from mpirun: " + errno_text(errno));
    if (got == 0) return broken("mpirun closed the connection");
    if (c == '\n') return line;
    line += c;
  }
  return broken("mpirun sent an endless line");
}

Result<std::string> Pmi::ask(const std::string& command, std::string_view expected) {
  const std::string line = command + "\n";
  for (size_t sent = 0; sent < line.size();) {
    const ssize_t n = ::send(fd_, line.data() + sent, line.size() - sent, MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return broken("cannot write to mpirun: " + errno_text(errno));
    sent += static_cast<size_t>(n);
  }
  std::string reply = GYRE_TRY(read_line());
  const std::string_view rc = value_of(reply, "rc");
  if (value_of(reply, "cmd") != expected || !(rc.empty() || rc == "0")) return broken(fmt::format("{} was answered by {}", command, reply));
  return reply;
}

}  // namespace

Result<SharedByPmi> share_by_pmi(int fd, Rank rank, std::string_view mine, std::chrono::milliseconds timeout) {
  Pmi pmi(fd, Clock::now() + timeout);
  GYRE_TRY(pmi.ask("cmd=init pmi_version=1 pmi_subversion=1", "response_to_init"));
  const std::string named = GYRE_TRY(pmi.ask("cmd=get_my_kvsname", "my_kvsname"));
  SharedByPmi shared;
  shared.job = value_of(named, "kvsname");
  const std::string key = fmt::format("kvsname={} key=gyre-root", shared.job);
  if (rank == 0) GYRE_TRY(pmi.ask(fmt::format("cmd=put {} value={}", key, mine), "put_result"));
  GYRE_TRY(pmi.ask("cmd=barrier_in", "barrier_out"));
  const std::string got = GYRE_TRY(pmi.ask("cmd=get " + key, "get_result"));
  shared.text = value_of(got, "value");
  GYRE_TRY(pmi.ask("cmd=finalize", "finalize_ack"));
  if (shared.text.empty()) return broken("rank 0 published no address");
  return shared;
}

std::string own_address() {
  ifaddrs* first = nullptr;
  if (::getifaddrs(&first) != 0) return "127.0.0.1";
  const Unique<ifaddrs, ::freeifaddrs> owner(first);
  for (const ifaddrs* one = first; one != nullptr; one = one->ifa_next) {
    if (one->ifa_addr == nullptr || one->ifa_addr->sa_family != AF_INET) continue;
    if ((one->ifa_flags & IFF_LOOPBACK) != 0 || (one->ifa_flags & IFF_UP) == 0) continue;
    std::array<char, INET_ADDRSTRLEN> text{};
    const auto* address = reinterpret_cast<const sockaddr_in*>(one->ifa_addr);
    if (::inet_ntop(AF_INET, &address->sin_addr, text.data(), text.size()) != nullptr) return text.data();
  }
  return "127.0.0.1";
}

}  // namespace gyre::transport
