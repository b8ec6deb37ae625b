#include <fmt/format.h>

#include <cerrno>
#include <cstring>

#include "base/text.h"
#include "transport/verbs/worker.h"

namespace gyre::transport::verbs {
namespace {

// Strangers that say nothing hold a descriptor each: so many at most, and so long.
constexpr size_t most_silent = 64;
constexpr std::chrono::seconds silence_limit{10};

/// What the address of its fallback follows.
struct ListenerCard {
  uint64_t magic = 0x3174'7369'6c62'6976;  // "viblist1"
  Cookie cookie{};
  Offer offer;
  uint64_t length = 0;
  sockaddr_storage address{};
};

}  // namespace

Result<std::unique_ptr<Listener>> VerbsWorker::listen() {
  if (fallback_ && !fallback_listener_) fallback_listener_ = GYRE_TRY(fallback_->listen());
  return std::unique_ptr<Listener>(std::make_unique<VerbsListener>(*this, GYRE_TRY(listen_at(way_.address))));
}

Result<std::unique_ptr<Endpoint>> VerbsWorker::connect(std::string_view address, std::string_view hello) {
  ListenerCard card;
  const uint64_t magic = card.magic;
  if (address.size() >= sizeof card) std::memcpy(&card, address.data(), sizeof card);
  if (address.size() < sizeof card || card.magic != magic || card.length > sizeof card.address)
    return Error{Code::invalid_argument, "the address is not that of a verbs listener"};
  return VerbsEndpoint::connect(*this, {card.address, static_cast<socklen_t>(card.length)}, card.cookie, card.offer,
                                address.substr(sizeof card), hello);
}

std::string VerbsListener::address() const {
  ListenerCard card;
  card.cookie = cookie_;
  card.offer = worker_.offer();
  card.length = socket_.address.length;
  card.address = socket_.address.bytes;
  return std::string(reinterpret_cast<const char*>(&card), sizeof card) + worker_.fallback_address();
}

Result<std::unique_ptr<Endpoint>> VerbsListener::accept() {
  const auto now = std::chrono::steady_clock::now();
  while (arrivals_.size() < most_silent) {
    UniqueFd fd = accept_at(socket_);
    if (!fd && (errno == EINTR || errno == ECONNABORTED)) continue;
    if (!fd && errno != EAGAIN) return Error{Code::system, fmt::format("accept4 at {}: {}", text_of(socket_.address), errno_text(errno))};
    if (!fd) break;
    arrivals_.push_back({Control(std::move(fd), worker_.way().silence), now});
  }
  for (auto arrival = arrivals_.begin(); arrival != arrivals_.end();) {
    const auto frame = arrival->control.receive();
    const bool greets = frame && static_cast<Word>(frame->kind) == Word::hello && frame->bytes.size() > sizeof cookie_ &&
                        std::memcmp(frame->bytes.data(), cookie_.data(), sizeof cookie_) == 0;
    if (greets) {
      Control control = std::move(arrival->control);
      arrivals_.erase(arrival);
      return VerbsEndpoint::accept(worker_, std::move(control), std::string_view(frame->bytes).substr(sizeof cookie_));
    }
    const bool stranger = frame || !arrival->control.ended().empty() || now - arrival->since > silence_limit;
    arrival = stranger ? arrivals_.erase(arrival) : arrival + 1;
  }
  return std::unique_ptr<Endpoint>();
}

}  // namespace gyre::transport::verbs
