#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "base/log.h"
#include "transport/verbs/worker.h"

namespace gyre::transport::verbs {
namespace {

constexpr size_t most_hello = 64;

constexpr const char* peer_closed = "the peer closed the connection";

/// What begins a hello, after the cookie; the hello's own bytes and the card of the link follow.
struct Greeting {
  Offer offer;
  uint32_t hello_bytes = 0, detours_name_bytes = 0;
};

}  // namespace

VerbsEndpoint::VerbsEndpoint(VerbsWorker& worker, Control control) : worker_(worker), control_(std::move(control)) { worker_.add(this); }

Result<std::unique_ptr<Endpoint>> VerbsEndpoint::connect(VerbsWorker& worker, const SocketAddress& address, const Cookie& cookie,
                                                         const Offer& peers, std::string_view fallback_address, std::string_view hello) {
  if (hello.size() > most_hello)
    return Error{Code::invalid_argument, fmt::format("a hello has at most {} bytes, not {}", most_hello, hello.size())};
  auto endpoint = std::make_unique<VerbsEndpoint>(worker, Control::to(address, worker.way().silence));
  endpoint->hello_ = hello;
  GYRE_TRY(endpoint->open_link(peers));
  if (worker.fallback() && !fallback_address.empty()) {
    endpoint->detours_name_.resize(16);
    fill_random(endpoint->detours_name_);
    auto detour = worker.fallback()->connect(fallback_address, endpoint->detours_name_);
    if (!detour) return Error{detour.error().code, fmt::format("GYRE_FALLBACK=tcp: {}", detour.error().what)};
    endpoint->link_->use_detour(*std::move(detour), worker.fallback_takes_cuda());
  }
  endpoint->control_.send(static_cast<uint32_t>(Word::hello), endpoint->hello_frame(cookie));
  return std::unique_ptr<Endpoint>(std::move(endpoint));
}

Status VerbsEndpoint::open_link(const Offer& peers) {
  const Offer own = worker_.offer();
  const Shape shape{peers.rails, std::max(own.pairs, peers.pairs), own.confirms != 0 || peers.confirms != 0, worker_.way().first};
  link_ = GYRE_TRY(Link::open(worker_.rails(), shape, control_.peer()));
  link_->on_failure([this] { worker_.note(); });
  link_->on_end([this] {
    if (state_ == State::connected) (void)hear();  // what is wrong there matters no more
    if (peer_left_) link_->take_farewell(farewell_);
  });
  return {};
}

std::string VerbsEndpoint::hello_frame(const Cookie& cookie) const {
  const Greeting greeting{worker_.offer(), static_cast<uint32_t>(hello_.size()), static_cast<uint32_t>(detours_name_.size())};
  std::string frame(cookie.data(), cookie.size());
  frame.append(reinterpret_cast<const char*>(&greeting), sizeof greeting);
  return frame + hello_ + detours_name_ + link_->card();
}

Result<std::unique_ptr<Endpoint>> VerbsEndpoint::accept(VerbsWorker& worker, Control control, std::string_view hello) {
  auto endpoint = std::make_unique<VerbsEndpoint>(worker, std::move(control));
  endpoint->state_ = State::awaits_joined;
  if (auto taken = endpoint->take_hello(hello); !taken) {
    endpoint->control_.send(static_cast<uint32_t>(Word::refusal), taken.error().what);
    endpoint->fail(std::move(taken).error());
  }
  return std::unique_ptr<Endpoint>(std::move(endpoint));
}

Status VerbsEndpoint::take_hello(std::string_view bytes) {
  Greeting greeting;
  if (bytes.size() >= sizeof greeting) std::memcpy(&greeting, bytes.data(), sizeof greeting);
  const uint64_t names = uint64_t{greeting.hello_bytes} + greeting.detours_name_bytes;
  if (bytes.size() < sizeof greeting || greeting.hello_bytes > most_hello || names > bytes.size() - sizeof greeting)
    return Error{Code::remote, fmt::format("{} greeted in {} bytes, which are no hello", control_.peer(), bytes.size())};
  hello_ = bytes.substr(sizeof greeting, greeting.hello_bytes);
  detours_name_ = bytes.substr(sizeof greeting + greeting.hello_bytes, greeting.detours_name_bytes);
  if (!detours_name_.empty() && !worker_.fallback())
    return Error{Code::remote, fmt::format("{} would fall back to TCP, which this side does not", control_.peer())};
  const Offer own = worker_.offer(), &peers = greeting.offer;
  if (peers.slot_bytes != own.slot_bytes || peers.credits != own.credits)
    return Error{Code::invalid_usage, fmt::format("{} credits of {} bytes here, but {} of {} at {}", own.credits, own.slot_bytes,
                                                  peers.credits, peers.slot_bytes, control_.peer())};
  GYRE_TRY(open_link(peers));
  GYRE_TRY(link_->join(bytes.substr(sizeof greeting + names)));
  control_.send(static_cast<uint32_t>(Word::reply), link_->card());
  return {};
}

Status VerbsEndpoint::take(const Frame& frame) {
  switch (static_cast<Word>(frame.kind)) {
    case Word::reply:
      if (state_ != State::awaits_reply) break;
      GYRE_TRY(link_->join(frame.bytes));
      control_.send(static_cast<uint32_t>(Word::joined), {});
      await_paths();
      return {};
    case Word::joined:
      if (state_ != State::awaits_joined) break;
      await_paths();
      return {};
    case Word::refusal:
      return Error{Code::remote, fmt::format("{} refused: {}", control_.peer(), frame.bytes)};
    case Word::goodbye_by_paths:
      silent_ = state_ == State::connected;
      return {};
    case Word::goodbye:
      peer_left_ = true;
      farewell_ = frame.bytes;
      return {};
    case Word::failed:
      return Error{Code::remote, fmt::format("the connection has failed at {}: {}", control_.peer(), frame.bytes)};
    default:
      break;
  }
  return Error{Code::remote, fmt::format("{} sent message {} out of turn", control_.peer(), frame.kind)};
}

void VerbsEndpoint::fail(Error error) {
  if (error_) return;
  if (state_ != State::connected) state_ = State::failed;
  error_ = std::move(error);
  if (link_) link_->break_off(error_->what.c_str());
}

// After what the peer has sent before, which is at our device already.
void VerbsEndpoint::lose(Error error) {
  if (state_ == State::connected) worker_.drain();
  if (error_) return;
  if (!closing_ && state_ == State::connected) worker_.record(error);
  fail(std::move(error));
}

Status VerbsEndpoint::hear() {
  while (const auto frame = control_.receive()) GYRE_TRY(take(*frame));
  return {};
}

void VerbsEndpoint::look() {
  if (error_) return;
  if (auto heard = hear(); !heard) return lose(std::move(heard).error());
  if (!silent_ && !peer_left_ && control_.silent() && state_ == State::connected && outlives_tcp()) {
    silent_ = true;
    log::warn("the TCP connection to {} is lost: {}; {} paths carry on", control_.peer(), control_.ended(), link_->alive());
  }
  const bool ended = !silent_ && !control_.ended().empty();
  if (peer_left_ || ended) {
    worker_.drain();  // what the peer has sent before is at our device already
    if (error_) return;
    if (peer_left_) link_->take_farewell(farewell_);
    if (!peer_left_ && !closing_ && state_ == State::connected)
      worker_.record({Code::remote, fmt::format("connection to {}: {}", control_.peer(), control_.ended())});
    return fail({Code::remote, peer_left_ ? peer_closed : control_.ended()});
  }
  look_for_paths();
  if (state_ == State::connected || state_ == State::awaits_paths) link_->tick(Link::Clock::now(), silent_);
  look_at_link();
}

void VerbsEndpoint::await_paths() {
  state_ = State::awaits_paths;
  link_->try_paths();
}

// Connected is who has heard from all paths; some may have failed.
void VerbsEndpoint::look_for_paths() {
  if (state_ != State::awaits_paths) return;
  if (!detours_name_.empty() && !link_->detour()) {
    auto detour = worker_.take_fallback(detours_name_);
    if (!detour) return;
    link_->use_detour(std::move(detour), worker_.fallback_takes_cuda());
  }
  if (link_->detour()) {
    const auto ready = link_->detour()->ready();
    if (!ready) return fail({ready.error().code, fmt::format("GYRE_FALLBACK=tcp: {}", ready.error().what)});
    if (!*ready) return;
  }
  if (!link_->ready()) return;
  state_ = State::connected;
  log::info("{} of {} paths to {} carry, on {}{}", link_->alive(), link_->paths(), control_.peer(), worker_.describe_rails(),
            link_->detour() ? "; TCP when none is left" : "");
}

void VerbsEndpoint::look_at_link() {
  if (error_ || !link_) return;
  if (!link_->catch_up()) worker_.note();
  if (link_->peer_said_goodbye()) {
    peer_left_ = true;
    worker_.drain();
    link_->take_farewell({});
    return fail({Code::remote, peer_closed});
  }
  if (!link_->failure()) return;
  if (peer_left_) return fail({Code::remote, peer_closed});
  // A peer that has nothing under way would find out by none of its own.
  if (state_ == State::connected && !closing_ && !silent_) control_.send(static_cast<uint32_t>(Word::failed), link_->failure()->what);
  lose(*link_->failure());
}

Result<bool> VerbsEndpoint::ready() {
  if (state_ == State::failed) return *error_;
  return state_ == State::connected;
}

Fifo& VerbsEndpoint::fifo() {
  if (!fifo_) {
    fifo_ = std::make_unique<PostedFifo>(*this, worker_, worker_.slots(), [this](const Error& error) {
      worker_.record({error.code, fmt::format("connection to {}: {}", control_.peer(), error.what), error.file, error.line});
    });
  }
  return *fifo_;
}

Request* VerbsEndpoint::send(uint64_t tag, std::span<const std::byte> data, const Memory* memory) {
  if (state_ != State::connected) return nullptr;
  return link_->send(tag, data, static_cast<const Registered*>(memory));
}

Request* VerbsEndpoint::receive(uint64_t tag, std::span<std::byte> data, const Memory* memory, Group group) {
  if (state_ != State::connected) return nullptr;
  return link_->receive(tag, data, static_cast<const Registered*>(memory), group);
}

void VerbsEndpoint::start_close() {
  closing_ = true;
  worker_.unsettle(this);
  (void)closed();
}

// Goodbye comes after the last acknowledgement, so that the peer, who may hear it another way, has everything.
bool VerbsEndpoint::closed() {
  if (error_ || state_ != State::connected) return true;
  if (link_->sending()) {
    look();
    return false;
  }
  if (!said_goodbye_) {
    look();  // or it would be said over a TCP connection that is gone
    if (error_) return true;
    if (link_->sending()) return false;
    if (silent_ || link_->alive() == 0) {
      if (!link_->say_goodbye()) return false;
      if (!silent_) control_.send(static_cast<uint32_t>(Word::goodbye_by_paths), {});
    } else {
      control_.send(static_cast<uint32_t>(Word::goodbye), link_->report());
    }
    said_goodbye_ = true;
    if (link_->sending()) return false;
  }
  Detour* detour = link_->detour();
  if (!detour) return true;
  if (!detour->idle()) return false;
  detour->endpoint().start_close();
  return detour->endpoint().closed();
}

void VerbsEndpoint::break_off(const char* reason) {
  closing_ = true;
  fail({Code::remote, reason});
}

// Queue pairs in the error state have let go already.
void VerbsEndpoint::let_go() {
  if (link_ && link_->detour()) link_->detour()->endpoint().let_go();
}

VerbsEndpoint::~VerbsEndpoint() {
  start_close();
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(1);
  while (!closed() && std::chrono::steady_clock::now() < end) (void)worker_.progress();
  worker_.remove(this);
}

}  // namespace gyre::transport::verbs
