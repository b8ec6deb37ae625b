#include <fmt/format.h>

#include <cstring>

#include "transport/verbs/worker.h"

namespace gyre::transport::verbs {
namespace {

constexpr size_t most_hello = 64;
constexpr std::chrono::seconds peer_silence{5};
constexpr const char* peer_closed = "the peer closed the connection";

/// What begins a hello, after the cookie; the hello's own bytes and the card of the link follow.
struct Geometry {
  uint64_t slot_bytes = 0;
  uint32_t credits = 0, hello_bytes = 0;
};

}  // namespace

VerbsEndpoint::VerbsEndpoint(VerbsWorker& worker, Control control) : worker_(worker), control_(std::move(control)) { worker_.add(this); }

Result<std::unique_ptr<Endpoint>> VerbsEndpoint::connect(VerbsWorker& worker, const SocketAddress& address, const Cookie& cookie,
                                                         std::string_view hello) {
  if (hello.size() > most_hello) return Error{Code::invalid_argument, fmt::format("a hello has at most {} bytes, not {}", most_hello, hello.size())};
  auto endpoint = std::make_unique<VerbsEndpoint>(worker, Control::to(address, peer_silence));
  endpoint->hello_ = hello;
  GYRE_TRY(endpoint->open_link());
  endpoint->control_.send(static_cast<uint32_t>(Word::hello), endpoint->hello_frame(cookie));
  return std::unique_ptr<Endpoint>(std::move(endpoint));
}

Status VerbsEndpoint::open_link() {
  link_ = GYRE_TRY(Link::open(worker_.rails(), worker_.paths_per_rail(), control_.peer()));
  link_->on_failure([this] { worker_.note(); });
  return {};
}

std::string VerbsEndpoint::hello_frame(const Cookie& cookie) const {
  const Geometry geometry{worker_.slots().bytes, worker_.slots().credits, static_cast<uint32_t>(hello_.size())};
  std::string frame(cookie.data(), cookie.size());
  frame.append(reinterpret_cast<const char*>(&geometry), sizeof geometry);
  return frame + hello_ + link_->card();
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
  Geometry geometry;
  if (bytes.size() >= sizeof geometry) std::memcpy(&geometry, bytes.data(), sizeof geometry);
  if (bytes.size() < sizeof geometry || geometry.hello_bytes > std::min(most_hello, bytes.size() - sizeof geometry))
    return Error{Code::remote, fmt::format("{} greeted in {} bytes, which are no hello", control_.peer(), bytes.size())};
  hello_ = bytes.substr(sizeof geometry, geometry.hello_bytes);
  const Slots own = worker_.slots();
  if (geometry.slot_bytes != own.bytes || geometry.credits != own.credits)
    return Error{Code::invalid_usage, fmt::format("{} credits of {} bytes here, but {} of {} at {}", own.credits, own.bytes, geometry.credits,
                                                  geometry.slot_bytes, control_.peer())};
  GYRE_TRY(open_link());
  GYRE_TRY(link_->join(bytes.substr(sizeof geometry + geometry.hello_bytes)));
  control_.send(static_cast<uint32_t>(Word::reply), link_->card());
  return {};
}

Status VerbsEndpoint::take(const Frame& frame) {
  switch (static_cast<Word>(frame.kind)) {
    case Word::reply:
      if (state_ != State::awaits_reply) break;
      GYRE_TRY(link_->join(frame.bytes));
      control_.send(static_cast<uint32_t>(Word::joined), {});
      state_ = State::connected;
      return {};
    case Word::joined:
      if (state_ != State::awaits_joined) break;
      state_ = State::connected;
      return {};
    case Word::refusal:
      return Error{Code::remote, fmt::format("{} refused: {}", control_.peer(), frame.bytes)};
    case Word::goodbye:
      peer_left_ = true;
      return {};
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

void VerbsEndpoint::look() {
  if (error_) return;
  while (const auto frame = control_.receive()) {
    if (auto taken = take(*frame); !taken) return fail(std::move(taken).error());
  }
  const bool ended = !control_.ended().empty();
  if (peer_left_ || ended) {
    // What the peer has sent before is at our device already.
    worker_.drain();
    if (!peer_left_ && !closing_ && state_ == State::connected)
      worker_.record({Code::remote, fmt::format("connection to {}: {}", control_.peer(), control_.ended())});
    return fail({Code::remote, peer_left_ ? peer_closed : control_.ended()});
  }
  if (link_ && !link_->catch_up()) worker_.note();
  if (link_ && link_->failure()) {
    if (!closing_) worker_.record(*link_->failure());
    fail(*link_->failure());
  }
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

Request* VerbsEndpoint::receive(uint64_t tag, std::span<std::byte> data, const Memory* memory) {
  if (state_ != State::connected) return nullptr;
  return link_->receive(tag, data, static_cast<const Registered*>(memory));
}

void VerbsEndpoint::start_close() { closing_ = true; }

// Goodbye comes after the last acknowledgement, so that the peer, who hears it another way, has everything.
bool VerbsEndpoint::closed() {
  if (error_ || state_ != State::connected || said_goodbye_) return true;
  if (link_->sending()) {
    look();
    return false;
  }
  control_.send(static_cast<uint32_t>(Word::goodbye), {});
  return said_goodbye_ = true;
}

void VerbsEndpoint::break_off(const char* reason) {
  closing_ = true;
  fail({Code::remote, reason});
}

VerbsEndpoint::~VerbsEndpoint() {
  start_close();
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(1);
  while (!closed() && std::chrono::steady_clock::now() < end) (void)worker_.progress();
  worker_.remove(this);
}

}  // namespace gyre::transport::verbs
