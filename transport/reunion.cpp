#include "transport/reunion.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <optional>

#include "base/text.h"
#include "transport/bootstrap_socket.h"
#include "transport/bootstrap_wire.h"
#include "transport/control.h"
#include "transport/door.h"

namespace gyre::transport {
namespace {

using Clock = std::chrono::steady_clock;

/// A connection that is tried.
struct Knock {
  size_t rank;
  UniqueFd fd;
};

// -1: not yet known; else 0 or an errno
int outcome(int fd) {
  pollfd writable{fd, POLLOUT, 0};
  if (::poll(&writable, 1, 0) <= 0) return -1;
  int error = 0;
  socklen_t length = sizeof error;
  return ::getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &length) == 0 ? error : errno;
}

// Who has asked whether this rank lives has been answered, and who wants to join tries again.
void turn_all_away(int door) {
  while (UniqueFd(::accept4(door, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK))) {
  }
}

}  // namespace

Result<Reunion> Reunion::open(Bootstrap& job, const std::string& host) {
  auto door = open_wide_door();
  if (!door) {
    job.fail(door.error());
    return door.error();
  }
  std::string card;
  bootstrap::put(card, door->port);
  bootstrap::put(card, random_number());
  bootstrap::put(card, static_cast<uint32_t>(host.size()));
  card += host + door->host;
  std::vector<Card> cards;
  for (const std::string& bytes : GYRE_TRY(job.all_gather(card))) {
    std::string_view rest = bytes;
    Card& theirs = cards.emplace_back();
    theirs.port = bootstrap::take<uint16_t>(rest).value_or(0);
    theirs.job = bootstrap::take<uint64_t>(rest).value_or(0);
    const size_t length = std::min<size_t>(bootstrap::take<uint32_t>(rest).value_or(0), rest.size());
    theirs.host = rest.substr(0, length);
    theirs.addresses = rest.substr(length);
  }
  return Reunion(job.rank(), PrivateFd(std::move(door->fd)), std::move(cards));
}

Rendezvous Reunion::at(Rank rank) const {
  const Card& card = cards_[static_cast<size_t>(rank)];
  Rendezvous meeting;
  meeting.host = card.host == cards_[static_cast<size_t>(rank_)].host ? "127.0.0.1" : card.addresses;
  meeting.port = card.port;
  meeting.job = card.job;
  return meeting;
}

Rendezvous Reunion::rendezvous(std::span<const Rank> members, std::chrono::milliseconds timeout) const {
  Rendezvous meeting = at(members.front());
  meeting.rank = static_cast<Rank>(std::find(members.begin(), members.end(), rank_) - members.begin());
  meeting.size = static_cast<int>(members.size());
  meeting.timeout = timeout;
  if (meeting.rank == 0) meeting.listen_fd = door_.get();
  return meeting;
}

std::vector<Rank> Reunion::living(std::chrono::milliseconds limit) {
  turn_all_away(door_.get());
  std::vector<bool> lives(cards_.size());
  std::vector<Knock> knocks;
  for (size_t rank = 0; rank < cards_.size(); ++rank) {
    lives[rank] = static_cast<Rank>(rank) == rank_;
    const auto addresses =
        lives[rank] || gone_[rank] ? std::vector<bootstrap::Address>() : bootstrap::addresses(at(static_cast<Rank>(rank)));
    for (const bootstrap::Address& address : addresses ? *addresses : std::vector<bootstrap::Address>()) {
      UniqueFd fd(::socket(address.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
      if (!fd && errno == EAFNOSUPPORT) continue;
      if (!fd) {
        lives[rank] = true;  // or may: it can't be asked, and to leave it out would be silent
        break;
      }
      const int rc = ::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address.storage), address.length);
      if (rc == 0 || errno == EINPROGRESS || errno == EINTR) knocks.push_back({rank, std::move(fd)});
    }
  }
  for (const auto end = Clock::now() + limit; !knocks.empty() && Clock::now() < end;) {
    std::vector<pollfd> fds(knocks.size());
    std::transform(knocks.begin(), knocks.end(), fds.begin(), [](const Knock& knock) { return pollfd{knock.fd.get(), POLLOUT, 0}; });
    ::poll(fds.data(), fds.size(), 50);
    std::erase_if(knocks, [&](const Knock& knock) {
      const int error = outcome(knock.fd.get());
      if (error == 0) lives[knock.rank] = true;
      return error >= 0 || lives[knock.rank];
    });
  }
  std::vector<Rank> living;
  for (size_t rank = 0; rank < lives.size(); ++rank) {
    gone_[rank] = !lives[rank];
    if (lives[rank]) living.push_back(static_cast<Rank>(rank));
  }
  return living;
}

}  // namespace gyre::transport
