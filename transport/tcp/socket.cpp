#include "transport/tcp/socket.h"

#include <fmt/format.h>
#include <netinet/tcp.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/text.h"
#include "transport/net_filter.h"

namespace gyre::transport::tcp {
namespace {

constexpr uint64_t card_magic = 0x3174'7369'6c70'6374;  // "tcplist1"
constexpr size_t most_places = 16;

struct CardHead {
  uint64_t magic = 0;
  Cookie cookie{};
  uint64_t places = 0;
};
struct CardPlace {
  uint32_t length = 0;
  char bytes[sizeof(sockaddr_in6)] = {};
};

template <class T>
void append(std::string& text, const T& value) {
  text.append(reinterpret_cast<const char*>(&value), sizeof value);
}

void set(int fd, int level, int option, int value) { ::setsockopt(fd, level, option, &value, sizeof value); }

// The largest buffer that a program may ask for (net.core.rmem_max, wmem_max), which is often less than what one grows to by itself.
int most_buffer_bytes() {
  const auto most = [](int option) {
    const UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    set(fd.get(), SOL_SOCKET, option, 1 << 30);
    int granted = 0;
    socklen_t length = sizeof granted;
    return ::getsockopt(fd.get(), SOL_SOCKET, option, &granted, &length) == 0 ? granted / 2 : 0;  // twice what was asked for
  };
  static const int found = std::min(most(SO_RCVBUF), most(SO_SNDBUF));
  return found;
}

}  // namespace

Result<std::vector<SocketAddress>> own_addresses() {
  const auto filter = NetFilter::from_environment();
  const auto all = GYRE_TRY(read_interfaces());
  std::vector<SocketAddress> addresses;
  for (const auto& interface : choose_interfaces(all, filter)) addresses.push_back(interface.address);
  if (!addresses.empty()) return addresses;
  const std::string rules = interface_rules(filter);
  return Error{Code::invalid_usage, rules.empty() ? "there is no network interface with an address" : "no network interface fits " + rules};
}

std::string encode(const Card& card) {
  std::string text;
  append(text, CardHead{card_magic, card.cookie, card.places.size()});
  for (const SocketAddress& place : card.places) {
    CardPlace one{place.length, {}};
    std::memcpy(one.bytes, &place.bytes, std::min<size_t>(place.length, sizeof one.bytes));
    append(text, one);
  }
  return text;
}

Result<Card> decode(std::string_view text) {
  const Error wrong{Code::invalid_argument, "the address is not that of a tcp listener"};
  CardHead head;
  if (text.size() < sizeof head) return wrong;
  std::memcpy(&head, text.data(), sizeof head);
  if (head.magic != card_magic || head.places == 0 || head.places > most_places) return wrong;
  if (text.size() != sizeof head + head.places * sizeof(CardPlace)) return wrong;
  Card card{head.cookie, {}};
  for (size_t i = 0; i < head.places; ++i) {
    CardPlace one;
    std::memcpy(&one, text.data() + sizeof head + i * sizeof one, sizeof one);
    SocketAddress& place = card.places.emplace_back();
    place.length = one.length;
    std::memcpy(&place.bytes, one.bytes, sizeof one.bytes);
    const bool v4 = place.bytes.ss_family == AF_INET && one.length == sizeof(sockaddr_in);
    if (!v4 && !(place.bytes.ss_family == AF_INET6 && one.length == sizeof(sockaddr_in6))) return wrong;
  }
  return card;
}

void bound_bytes_under_way(int fd, size_t bytes, bool room) {
  constexpr size_t least = 512 << 10;  // several segments of 64 KiB, with fewer of which the kernel waits for its timers
  const int bound = static_cast<int>(std::clamp<size_t>(bytes, least, 1 << 30));
  set(fd, IPPROTO_TCP, TCP_WINDOW_CLAMP, bound);
  set(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, least);
  if (!room || most_buffer_bytes() < bound) return;
  // The system makes each twice as large, for what packets take beside what they carry: three times the bound is what a sender is rid of at
  // most, whatever becomes of the clamp.
  set(fd, SOL_SOCKET, SO_RCVBUF, bound);
  set(fd, SOL_SOCKET, SO_SNDBUF, bound / 2);
}

// As in a conversation. Where something got lost the kernel goes back to quick ones, for good where nothing goes the other way.
void acknowledge_every_second(int fd) { set(fd, IPPROTO_TCP, TCP_QUICKACK, 0); }

Result<PrivateFd> start_connecting(const SocketAddress& address, std::chrono::seconds silence) {
  PrivateFd fd(UniqueFd(::socket(address.bytes.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)));
  if (!fd) return Error{Code::system, "socket: " + errno_text(errno)};
  watch_host(fd.get(), silence);
  if (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address.bytes), address.length) != 0 && errno != EINPROGRESS && errno != EINTR)
    return Error{Code::remote, errno_text(errno)};
  return fd;
}

bool silent(int fd, std::chrono::seconds silence) {
  tcp_info info{};
  socklen_t length = sizeof info;
  if (::getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &length) != 0) return false;
  // Sent again, or a full peer asked for room, more than once, and no answer since. A peer that is only full does answer.
  const bool unanswered = (info.tcpi_unacked > 0 && info.tcpi_retransmits > 1) || info.tcpi_probes > 1;
  return unanswered && std::chrono::milliseconds(info.tcpi_last_ack_recv) > silence;
}

}  // namespace gyre::transport::tcp
