#include "plugin/listening.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/log.h"
#include "base/text.h"
#include "plugin/process.h"

namespace gyre::plugin {
namespace {

using std::chrono::steady_clock;

// Strangers that say nothing hold a descriptor each: so many at most, and so long.
constexpr size_t max_silent = 64;
constexpr std::chrono::seconds silence_limit{10};
constexpr uint64_t strangers_told = 3;

}  // namespace

Result<std::shared_ptr<ListenComm>> ListenComm::open(std::shared_ptr<Group> group, std::chrono::seconds silence, Handle handle) {
  HandleContent content;
  fill_random(content.cookie);
  auto socket = GYRE_TRY(listen_at(group->members().front().address));
  content.address = socket.address;
  write_handle(handle, content);
  return std::make_shared<ListenComm>(std::move(group), silence, std::move(socket), content.cookie);
}

ListenComm::ListenComm(std::shared_ptr<Group> group, std::chrono::seconds silence, ListeningSocket socket, const Cookie& cookie)
    : group_(std::move(group)), silence_(silence), socket_(std::move(socket)), cookie_(cookie) {}

ListenComm::~ListenComm() {
  const std::lock_guard turn(group_->turn);
  for (auto& arrival : arrivals_)
    if (arrival.endpoint) group_->retire(std::move(arrival.endpoint));
  for (auto& listener : listeners_) listener.reset();
  if (strangers_ > 0) log::info("{} strangers came to {}", strangers_, text_of(socket_.address));
}

// So many at a time, that strangers can't take all descriptors before the first is dropped.
Status ListenComm::take_arrivals() {
  for (size_t i = 0; i < max_silent; ++i) {
    auto fd = accept_at(socket_);
    if (!fd && (errno == EAGAIN || errno == EINTR || errno == ECONNABORTED)) return {};
    if (!fd) return Error{Code::system, fmt::format("accept4 at {}: {}", text_of(socket_.address), errno_text(errno))};
    arrivals_.push_back({Control(std::move(fd), silence_), steady_clock::now()});
  }
  return {};
}

void ListenComm::drop(const Arrival& arrival, const std::string& why) {
  group_->process().stats().stranger();
  if (++strangers_ <= strangers_told)
    log::info("dropped a stranger from {} at {}: {}", arrival.control.peer(), text_of(socket_.address), why);
}

Result<std::unique_ptr<Comm>> ListenComm::accept() {
  GYRE_TRY(take_arrivals());
  const auto now = steady_clock::now();
  auto silent = static_cast<size_t>(std::count_if(arrivals_.begin(), arrivals_.end(), [](const Arrival& a) { return a.number == 0; }));
  for (auto arrival = arrivals_.begin(); arrival != arrivals_.end();) {
    const bool had_greeted = arrival->number != 0;
    auto heard = hear(*arrival);
    const bool greeted = arrival->number != 0;
    if (greeted && !had_greeted) --silent;
    const bool tiresome = !greeted && (silent > max_silent || now - arrival->since > silence_limit);
    if (heard && !tiresome) {
      ++arrival;
      continue;
    }
    if (!greeted) {
      drop(*arrival, heard ? "it said nothing" : heard.error().what);
      --silent;
    }
    if (arrival->endpoint) group_->retire(std::move(arrival->endpoint));
    arrival = arrivals_.erase(arrival);
    if (greeted) return std::move(heard).error();
  }
  group_->progress();
  take_endpoints();
  for (auto arrival = arrivals_.begin(); arrival != arrivals_.end(); ++arrival) {
    if (!arrival->endpoint) continue;
    const auto ready = arrival->endpoint->ready();
    if (!ready) {
      group_->retire(std::move(arrival->endpoint));
      refuse(*arrival, ready.error().what);
      if (!arrival->joined) continue;
      const Error lost{Code::remote,
                       fmt::format("the connection from {} was lost once it was made: {}", arrival->from.name, ready.error().what)};
      arrivals_.erase(arrival);
      return lost;
    }
    if (!*ready || !arrival->joined) continue;
    log::info("{} receives from {} ({}) over {}{}", group_->device_name(), arrival->control.peer(), arrival->from.name,
              group_->name_of(arrival->way), group_->why(arrival->way));
    auto comm = std::make_unique<Comm>(group_, arrival->way, Comm::Direction::receives, std::move(arrival->endpoint),
                                       std::move(arrival->control), arrival->from.name);
    arrivals_.erase(arrival);
    return comm;
  }
  return std::unique_ptr<Comm>();
}

Status ListenComm::hear(Arrival& arrival) {
  while (!arrival.joined) {  // what follows is for the Comm
    const auto frame = arrival.control.receive();
    if (!frame) break;
    const auto word = static_cast<Word>(frame->kind);
    if (arrival.number == 0) {
      if (word != Word::hello) return Error{Code::remote, fmt::format("it began with message {}", frame->kind)};
      GYRE_TRY(take_hello(arrival, frame->bytes));
    } else if (word == Word::attempt) {
      take_attempt(arrival, frame->bytes);
    } else if (word == Word::joined) {
      arrival.joined = true;
    }
  }
  if (arrival.joined || arrival.control.ended().empty()) return {};
  const std::string who = arrival.number == 0 ? "" : fmt::format("the connection from {} was lost while it was made: ", arrival.from.name);
  return Error{Code::remote, who + arrival.control.ended()};
}

Status ListenComm::take_hello(Arrival& arrival, std::string_view bytes) {
  auto hello = GYRE_TRY(decode_hello(bytes));
  if (hello.cookie != cookie_) return Error{Code::remote, "it does not have the handle of this listener"};
  arrival.number = hello.number;
  arrival.from = std::move(hello.from);
  Offer offer{0, group_->identity()};
  for (const Way& way : group_->ways()) {
    const bool possible = !is_local(way.kind)             ? true
                          : way.kind == WayKind::in_place ? group_->identity().may_read(arrival.from)
                                                          : group_->identity().shares_memory_with(arrival.from);
    if (possible) offer.ways |= 1U << static_cast<uint32_t>(way.kind);
  }
  arrival.control.send(static_cast<uint32_t>(Word::offer), encode(offer));
  return {};
}

void ListenComm::take_attempt(Arrival& arrival, std::string_view bytes) {
  const auto kind = decode_way(bytes);
  if (arrival.endpoint) group_->retire(std::move(arrival.endpoint));
  arrival.joined = false;
  if (!kind) return;
  arrival.way = *kind;
  arrival.asked = true;
  auto& listener = listeners_[static_cast<size_t>(arrival.way)];
  if (!listener) {
    auto worker = group_->worker(arrival.way);
    if (!worker) return refuse(arrival, worker.error().what);
    auto opened = (*worker)->listen();
    if (!opened) return refuse(arrival, opened.error().what);
    listener = *std::move(opened);
  }
  arrival.control.send(static_cast<uint32_t>(Word::address), listener->address());
}

void ListenComm::refuse(Arrival& arrival, const std::string& why) {
  arrival.asked = false;
  arrival.control.send(static_cast<uint32_t>(Word::refusal), encode_refusal(arrival.way, why));
}

// Whose greeting could not be taken is not known, and would wait for ever.
void ListenComm::refuse_all(WayKind way, const std::string& why) {
  for (auto& arrival : arrivals_)
    if (arrival.asked && arrival.way == way && !arrival.endpoint) refuse(arrival, why);
}

// An endpoint belongs to the arrival whose number it greets with.
void ListenComm::take_endpoints() {
  for (auto& listener : listeners_) {
    if (!listener) continue;
    const auto way = static_cast<WayKind>(&listener - listeners_.data());  // a late greeting may come by one that was given up
    auto endpoint = listener->accept();
    if (!endpoint) {
      log::warn("{}", endpoint.error().what);
      refuse_all(way, endpoint.error().what);
      continue;
    }
    if (!*endpoint) continue;
    uint64_t number = 0;
    const auto hello = (*endpoint)->hello();
    if (hello.size() == sizeof number) std::memcpy(&number, hello.data(), sizeof number);
    const auto owner = std::find_if(arrivals_.begin(), arrivals_.end(),
                                    [&](const Arrival& a) { return number != 0 && a.number == number && a.way == way; });
    if (owner == arrivals_.end()) {
      group_->retire(*std::move(endpoint));
    } else {
      owner->endpoint = *std::move(endpoint);
    }
  }
}

}  // namespace gyre::plugin
