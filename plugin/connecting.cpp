#include "plugin/connecting.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "base/log.h"

namespace gyre::plugin {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

// A kernel that can't queue a connection may refuse it; a listener that is gone refuses them all.
constexpr milliseconds refusal_limit{1000};
constexpr milliseconds retry_interval{20};

std::string_view bytes_of(const uint64_t& number) { return {reinterpret_cast<const char*>(&number), sizeof number}; }

}  // namespace

Connecting::Connecting(std::shared_ptr<Group> group, const HandleContent& content, Handle handle, std::chrono::seconds silence)
    : group_(std::move(group)),
      content_(content),
      handle_(handle.data()),
      silence_(silence),
      number_(random_number()),
      peer_(text_of(content.address)) {
  reconnect();
}

Connecting::~Connecting() {
  const std::lock_guard turn(group_->turn);
  if (endpoint_) group_->retire(std::move(endpoint_));
}

void Connecting::reconnect() {
  control_ = Control::to(content_.address, silence_);
  control_.send(static_cast<uint32_t>(Word::hello), encode(Hello{content_.cookie, number_, group_->identity()}));
}

Error Connecting::failed(const std::string& why) const {
  return {Code::remote, fmt::format("to {} by {}: {}", peer_, group_->members().front().name, why)};
}

Result<std::unique_ptr<Comm>> Connecting::step() {
  const auto now = steady_clock::now();
  asked_at_.store(now, std::memory_order_relaxed);
  while (const auto frame = control_.receive()) GYRE_TRY(take(*frame));
  if (!control_.ended().empty()) {
    // Before the offer nothing is lost by another try. How long the first one lasted says nothing: this side may not have been asked.
    if (!refused_at_) refused_at_ = now;
    const bool again = state_ == State::greets && !control_.stranger() && now - *refused_at_ < refusal_limit;
    if (!again) return failed(control_.ended());
    if (now >= retry_at_) {
      retry_at_ = now + retry_interval;
      reconnect();
    }
    return std::unique_ptr<Comm>();
  }
  group_->progress();
  if (state_ != State::joins) return std::unique_ptr<Comm>();
  auto ready = endpoint_->ready();
  if (!ready) {
    group_->retire(std::move(endpoint_));
    GYRE_TRY(next_way(ready.error().what));
    return std::unique_ptr<Comm>();
  }
  if (!*ready) return std::unique_ptr<Comm>();
  state_ = State::done;
  control_.send(static_cast<uint32_t>(Word::joined), {});
  log::info("{} sends to {} ({}) over {}{}{}", group_->device_name(), control_.peer(), peer_, group_->name_of(way_), group_->why(way_),
            refusals_.empty() ? "" : "; not " + refusals_);
  return std::make_unique<Comm>(group_, way_, Comm::Direction::sends, std::move(endpoint_), std::move(control_), peer_);
}

Status Connecting::take(const Frame& frame) {
  switch (static_cast<Word>(frame.kind)) {
    case Word::offer:
      if (state_ == State::greets) return take_offer(frame.bytes);
      break;
    case Word::address:
      if (state_ == State::asks) return take_address(frame.bytes);
      break;
    case Word::refusal:
      if (state_ != State::greets) return take_refusal(frame.bytes);
      break;
    default:
      break;
  }
  return failed(fmt::format("it sent message {} out of turn", frame.kind));
}

Status Connecting::take_offer(std::string_view bytes) {
  auto offer = decode_offer(bytes);
  if (!offer) return failed(offer.error().what);
  const Identity& peer = offer->from;
  peer_ = peer.name;
  if (peer.tuner_file != group_->identity().tuner_file)  // who chooses by other rules waits for other messages
    return failed("its GYRE_TUNER_FILE is not the same as here: ranks that choose differently hang");
  for (auto way = group_->ways().rbegin(); way != group_->ways().rend(); ++way) {
    const bool offered = (offer->ways >> static_cast<uint32_t>(way->kind) & 1U) != 0;
    if (is_local(way->kind) && !group_->identity().shares_memory_with(peer)) continue;
    if (!offered && way->kind == WayKind::verbs) refusals_ = fmt::format("{}: the peer has no verbs here", way->name);
    if (!offered) continue;
    if (way->kind == WayKind::in_place && !group_->identity().may_read(peer)) continue;
    ways_.push_back(way->kind);
  }
  const bool local_only = std::ranges::all_of(group_->ways(), [](const Way& way) { return is_local(way.kind); });
  return next_way(
      local_only ? "there is no way to it: this process has shared memory only (GYRE_TRANSPORT, UCX_TLS), and shares none with that one"
                 : "it offers no way that this process has; are GYRE_TRANSPORT and UCX_TLS the same on all ranks?");
}

Status Connecting::take_refusal(std::string_view bytes) {
  if (decode_way(bytes) != way_) return {};  // of a way that this side has given up already
  if (endpoint_) group_->retire(std::move(endpoint_));
  return next_way(std::string(bytes));
}

// Asks for the next way that is left, or says why there is none.
Status Connecting::next_way(const std::string& why) {
  if (state_ != State::greets) refusals_ += fmt::format("{}{}: {}", refusals_.empty() ? "" : "; ", group_->name_of(way_), why);
  if (ways_.empty()) return failed(state_ == State::greets || refusals_.empty() ? why : refusals_);
  way_ = ways_.back();
  ways_.pop_back();
  state_ = State::asks;
  control_.send(static_cast<uint32_t>(Word::attempt), encode_attempt(way_));
  return {};
}

Status Connecting::take_address(std::string_view address) {
  const auto worker = group_->worker(way_);
  if (!worker) return next_way(worker.error().what);
  auto endpoint = (*worker)->connect(address, bytes_of(number_));
  if (!endpoint) return next_way(endpoint.error().what);
  endpoint_ = *std::move(endpoint);
  state_ = State::joins;
  return {};
}

}  // namespace gyre::plugin
