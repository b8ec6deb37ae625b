// Rank 0's half of the rendezvous: one poll() over the listening socket, the guests whose hello is not complete, and the ranks that have
// a seat already.
#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <utility>

#include "base/log.h"
#include "transport/bootstrap_join.h"
#include "transport/bootstrap_root.h"
#include "transport/bootstrap_socket.h"
#include "transport/bootstrap_text.h"

namespace gyre::transport::bootstrap {
namespace {

using Clock = std::chrono::steady_clock;

/// A real rank says hello as soon as it is connected; who is silent that long is a stranger.
constexpr std::chrono::seconds silence_limit{2};
/// A rank that gave up may come again at once; else one that is gone ends the rendezvous, long before its timeout.
constexpr std::chrono::seconds replacement_limit{3};
constexpr size_t most_guests = 512;

struct Guest {
  PrivateFd fd;
  Clock::time_point since;
  std::string heard;
};

struct Seat {
  PrivateFd fd;
  Hello hello;
  std::optional<Clock::time_point> lost;  ///< since when it is empty again
};

class Reception {
 public:
  Reception(const Rendezvous& rendezvous, int listener)
      : rendezvous_(rendezvous), listener_(listener), seats_(static_cast<size_t>(rendezvous.size)) {}

  Status wait_for_all();
  std::vector<Joined> depart();

 private:
  void hear_guests(Clock::time_point now);
  void wait(Clock::time_point until);
  Status accept_guests();
  void listen_to(Guest&);
  void judge(Guest&);
  std::string objection(const Hello&);
  Error turn_away(Error);
  void reply(int fd, Answer, const std::string& text);
  void empty_if_dead(Seat&);
  std::vector<Rank> missing() const;
  Error missing_error(const std::vector<Rank>&);
  Error tell_all(Error);

  const Rendezvous& rendezvous_;
  int listener_;
  std::vector<Seat> seats_;  ///< by rank; ours stays empty
  std::vector<Guest> guests_;
  std::string last_refusal_;    ///< a likely reason why a rank is missing
  std::optional<Error> wrong_;  ///< a rank came that can't be of this job, though only its ranks know of it
  std::string doom_;            ///< why nobody gets a seat any more
  /// Kept for turn_away(): to refuse a rank takes one.
  UniqueFd spare_{::open("/dev/null", O_RDONLY | O_CLOEXEC)};
  size_t turned_away_ = 0;
};

Status Reception::wait_for_all() {
  const auto deadline = Clock::now() + rendezvous_.timeout;
  for (;;) {
    if (const Status accepted = accept_guests(); !accepted) return turn_away(accepted.error());
    const auto now = Clock::now();
    hear_guests(now);
    if (wrong_) return turn_away(*wrong_);
    for (const Seat& seat : seats_) {
      if (seat.lost && now - *seat.lost > replacement_limit) {
        return tell_all(
            {Code::remote, fmt::format("rendezvous: {} is gone: its connection closed", seat.hello.process.text(seat.hello.rank))});
      }
    }
    const std::vector<Rank> absent = missing();
    if (absent.empty()) return {};
    if (now >= deadline) return missing_error(absent);
    if (auto why = ended_early(rendezvous_)) return tell_all(*std::move(why));
    wait(next_look(rendezvous_, deadline));
  }
}

void Reception::hear_guests(Clock::time_point now) {
  for (Guest& guest : guests_) {
    listen_to(guest);
    if (guest.fd && now - guest.since > silence_limit) {
      log::debug("rendezvous: a connection said nothing and was dropped");
      guest.fd = PrivateFd();
    }
  }
  std::erase_if(guests_, [](const Guest& guest) { return !guest.fd; });
}

// No more can be accepted, for want of descriptors mostly, or there are too many. Those with a seat learn it, which frees theirs, and those
// without as they come: else they would wait until their time is over.
Error Reception::turn_away(Error error) {
  const auto deadline = Clock::now() + replacement_limit;
  const size_t to_come = missing().size();
  doom_ = error.what;
  spare_ = UniqueFd();
  error = tell_all(std::move(error));
  seats_ = std::vector<Seat>(seats_.size());
  for (;;) {
    // A guest that has heard makes room for the next, which it is that can't be accepted here.
    [[maybe_unused]] const Status accepted = accept_guests();
    hear_guests(Clock::now());
    if (turned_away_ >= to_come || Clock::now() >= deadline) return error;
    wait(std::min(deadline, Clock::now() + std::chrono::milliseconds(50)));
  }
}

void Reception::wait(Clock::time_point until) {
  std::vector<pollfd> fds{{listener_, POLLIN, 0}};
  for (const Guest& guest : guests_) {
    fds.push_back({guest.fd.get(), POLLIN, 0});
    until = std::min(until, guest.since + silence_limit);
  }
  for (const Seat& seat : seats_) {
    if (seat.lost) until = std::min(until, *seat.lost + replacement_limit);
  }
  for (const Seat& seat : seats_) fds.push_back({seat.fd.get(), POLLRDHUP, 0});  // a seat without descriptor is ignored
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until - Clock::now()).count() + 1;
  if (::poll(fds.data(), fds.size(), static_cast<int>(std::clamp<long>(left, 0, 60'000))) <= 0) return;
  for (size_t i = 0; i < seats_.size(); ++i)
    if (fds[1 + guests_.size() + i].revents != 0) empty_if_dead(seats_[i]);
}

Status Reception::accept_guests() {
  for (;;) {
    PrivateFd fd(UniqueFd(::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK)));
    if (!fd) {
      if (errno == EAGAIN || errno == EWOULDBLOCK) return {};
      if (errno == ECONNABORTED || errno == EINTR || errno == EPROTO) continue;  // this one was gone before we took it
      return Error{Code::system, fmt::format("rank 0: cannot accept ranks: {}", errno_text(errno))};
    }
    set_options(fd.get());
    if (guests_.size() >= most_guests) guests_.erase(guests_.begin());
    guests_.push_back({std::move(fd), Clock::now(), {}});
  }
}

void Reception::listen_to(Guest& guest) {
  Hello hello;
  std::array<char, sizeof hello> bytes;
  const ssize_t got = ::recv(guest.fd.get(), bytes.data(), sizeof hello - guest.heard.size(), MSG_DONTWAIT);
  if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) return;
  if (got > 0) guest.heard.append(bytes.data(), static_cast<size_t>(got));
  const size_t known = std::min(guest.heard.size(), hello.magic.size());
  const bool ours = std::equal(guest.heard.begin(), guest.heard.begin() + static_cast<ptrdiff_t>(known), hello.magic.begin());
  if (got <= 0 || !ours) {
    log::debug("rendezvous: a connection {} and was dropped", ours ? "ended before its hello" : "sent what is no hello");
    guest.fd = PrivateFd();
    return;
  }
  if (guest.heard.size() == sizeof hello) judge(guest);
}

// Gives the guest a seat, or tells it why not. Either way it is a guest no longer.
void Reception::judge(Guest& guest) {
  Hello hello;
  std::memcpy(&hello, guest.heard.data(), sizeof hello);
  hello.process.host.back() = '\0';
  PrivateFd fd = std::move(guest.fd);
  if (hello.version == wire_version && hello.job != rendezvous_.job) {
    log::debug("rendezvous: {} belongs to another job", hello.process.text(hello.rank));
    return reply(fd.get(), Answer::other_job, "this is another job's rendezvous");
  }
  std::string problem = doom_.empty() ? objection(hello) : doom_;
  if (!doom_.empty()) ++turned_away_;
  if (!problem.empty()) {
    log::debug("rendezvous: refused {}: {}", hello.process.text(hello.rank), problem);
    reply(fd.get(), Answer::refused, problem);
    if (rendezvous_.gone_after.count() > 0 && hello.job == rendezvous_.job) wrong_ = {Code::invalid_usage, "rendezvous: " + problem};
    last_refusal_ = std::move(problem);
    return;
  }
  Seat& seat = seats_[static_cast<size_t>(hello.rank)];
  if (seat.fd) return;  // the same process by another of our addresses
  reply(fd.get(), Answer::accepted, "");
  seat = {std::move(fd), hello, std::nullopt};
}

std::string Reception::objection(const Hello& hello) {
  if (hello.version != wire_version)
    return fmt::format("rank {} speaks version {} of the rendezvous, rank 0 version {}", hello.rank, hello.version, wire_version);
  if (hello.size != rendezvous_.size)
    return fmt::format("rank {} says the job has {} ranks, rank 0 says {}", hello.rank, hello.size, rendezvous_.size);
  if (hello.rank < 0 || hello.rank >= rendezvous_.size) return fmt::format("rank {} is not in a job of {}", hello.rank, rendezvous_.size);
  Seat& seat = seats_[static_cast<size_t>(hello.rank)];
  empty_if_dead(seat);  // a rank that gave up and came again is not there twice
  if (hello.rank == 0 || (seat.fd && seat.hello.nonce != hello.nonce)) return fmt::format("rank {} joined twice", hello.rank);
  return {};
}

void Reception::reply(int fd, Answer answer, const std::string& text) {
  Reply reply;
  reply.answer = answer;
  reply.process = Process::self();
  std::copy_n(text.begin(), std::min(text.size(), reply.text.size() - 1), reply.text.begin());
  // Fits into a new socket's buffer. If it can't be sent, the connection is dead and its seat is emptied for that.
  [[maybe_unused]] const ssize_t sent = ::send(fd, &reply, sizeof reply, MSG_NOSIGNAL | MSG_DONTWAIT);
}

void Reception::empty_if_dead(Seat& seat) {
  char byte = 0;
  if (!seat.fd) return;
  const ssize_t got = ::recv(seat.fd.get(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) return;  // alive, and rightly silent until the start
  last_refusal_ = seat.hello.process.text(seat.hello.rank) + " joined, then its connection closed";
  log::debug("rendezvous: {}", last_refusal_);
  seat.fd = PrivateFd();
  seat.lost = Clock::now();
}

std::vector<Rank> Reception::missing() const {
  std::vector<Rank> absent;
  for (Rank rank = 1; rank < rendezvous_.size; ++rank)
    if (!seats_[static_cast<size_t>(rank)].fd) absent.push_back(rank);
  return absent;
}

Error Reception::missing_error(const std::vector<Rank>& absent) {
  return tell_all({Code::timeout, fmt::format("rendezvous: {} of {} did not join within {}{}", ranks_text(absent), rendezvous_.size,
                                              seconds_text(rendezvous_.timeout), last_refusal_.empty() ? "" : " (" + last_refusal_ + ")")});
}

// Those who wait for the start learn why there will be none.
Error Reception::tell_all(Error error) {
  const auto message = std::make_shared<const Message>(failure_message(error.code, error.what));
  for (Joined& joined : depart()) {
    joined.connection.send(message);
    joined.connection.flush();
  }
  return error;
}

std::vector<Joined> Reception::depart() {
  std::vector<Joined> all;
  for (Seat& seat : seats_) all.push_back({Connection(std::move(seat.fd)), seat.hello.process, {}});
  all[0].process = Process::self();
  return all;
}

}  // namespace

Result<std::vector<Joined>> gather_ranks(const Rendezvous& rendezvous) {
  PrivateFd own;
  int listener = rendezvous.listen_fd;
  if (listener >= 0) {
    // A blocking accept() could wait for a connection that poll() saw and that is gone.
    ::fcntl(listener, F_SETFL, ::fcntl(listener, F_GETFL) | O_NONBLOCK);
  } else {
    own = PrivateFd(GYRE_TRY(listen(rendezvous)));
    listener = own.get();
  }
  Reception reception(rendezvous, listener);
  GYRE_TRY(reception.wait_for_all());
  return reception.depart();
}

}  // namespace gyre::transport::bootstrap
