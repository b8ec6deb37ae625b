#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "transport/ucx_worker.h"

namespace gyre::transport::ucx {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds close_limit{1000};
constexpr milliseconds abandon_limit{50};
constexpr milliseconds cancel_limit{200};  // UCX answers at once, or the peer is gone
constexpr const char* peer_closed = "the peer closed the connection";

}  // namespace

UcxEndpoint::UcxEndpoint(UcxWorker& worker, uint32_t id, std::string_view hello, std::string peer_name)
    : worker_(worker),
      id_(id),
      hello_(hello),
      peer_name_(std::move(peer_name)),
      requests_(std::make_unique<Requests>(std::max(worker.way().requests, PostedFifo::requests_needed(worker.slots())) + 8)) {
  worker_.add(this);
}

Result<std::unique_ptr<Endpoint>> UcxEndpoint::open(UcxWorker& worker, Side side, const Message& peer, std::string_view hello) {
  const auto id = GYRE_TRY(worker.new_id());
  auto endpoint = std::make_unique<UcxEndpoint>(worker, id, hello, peer.name);
  GYRE_TRY(endpoint->start(side, peer));
  return std::unique_ptr<Endpoint>(std::move(endpoint));
}

Status UcxEndpoint::start(Side side, const Message& peer) {
  const auto opened = GYRE_TRY(worker_.open_endpoint(peer, !peer.unwatched));
  endpoint_ = opened.endpoint;
  watched_ = opened.watched;
  if (!watched_) process_ = ProcessWatch(peer.host, peer.process);
  await_goodbye();

  const bool accepts = side == Side::accepts;
  auto message = worker_.message(accepts ? MessageKind::reply : MessageKind::hello, id_);
  message.unwatched = !watched_;
  if (accepts) {
    message.name.clear();  // the peer has both from our listener's address
    message.worker_address.clear();
  } else {
    message.hello = hello_;
  }
  outgoing_ = GYRE_TRY(encode(message));
  const auto bytes = std::as_bytes(std::span(outgoing_));
  if (accepts) {
    peer_id_ = peer.id;
    control_send_ = requests_->send(endpoint_, wire_tag(TagKind::reply, peer_id_), bytes);
    state_ = State::sends_reply;
    if (auto checked = check_slots(peer.slots); !checked) (void)fail(std::move(checked).error());
  } else {
    control_receive_ = requests_->receive(worker_.get(), wire_tag(TagKind::reply, id_), reply_);
    control_send_ = requests_->send(endpoint_, wire_tag(TagKind::hello, peer.id), bytes);
  }
  return {};
}

void UcxEndpoint::await_goodbye() {
  ucp_request_param_t parameters{};
  parameters.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA | UCP_OP_ATTR_FLAG_NO_IMM_CMPL;
  parameters.cb.recv = on_goodbye;
  parameters.user_data = this;
  auto* request = ucp_tag_recv_nbx(worker_.get(), nullptr, 0, wire_tag(TagKind::goodbye, id_), exact, &parameters);
  if (UCS_PTR_IS_PTR(request) && !peer_left_) goodbye_ = request;
}

void UcxEndpoint::on_goodbye(void* ucx_request, ucs_status_t status, const ucp_tag_recv_info_t*, void* data) {
  auto& endpoint = *static_cast<UcxEndpoint*>(data);
  ucp_request_free(ucx_request);
  endpoint.goodbye_ = nullptr;
  if (status != UCS_OK) return;  // cancelled
  endpoint.peer_left_ = true;
  endpoint.worker_.note_break();
}

Result<bool> UcxEndpoint::fail(Error error) {
  state_ = State::failed;
  if (!error_) error_ = std::move(error);
  return *error_;
}

Status UcxEndpoint::check_slots(Slots peer) const {
  const auto own = worker_.slots();
  if (own.credits == peer.credits && own.bytes == peer.bytes) return {};
  return Error{Code::invalid_usage, fmt::format("{} credits of {} bytes here, but {} of {} at {}", own.credits, own.bytes, peer.credits,
                                                peer.bytes, peer_name_)};
}

Result<bool> UcxEndpoint::ready() {
  if (state_ == State::connected) return true;
  if (state_ == State::failed) return *error_;
  // A peer that refuses says why in its reply, and closes.
  const bool replied = state_ == State::waits_for_reply && control_receive_->done && control_receive_->failure == nullptr;
  // Who says goodbye to an id that it has from our reply was connected; what it has sent before is still to be received.
  const bool was_connected = state_ == State::sends_reply && peer_left_;
  if (broken_ && !replied && !was_connected) return fail({Code::remote, fmt::format("connecting to {}: {}", peer_name_, broken_)});
  if (!control_send_->done) return false;
  if (control_send_->failure && !was_connected)
    return fail({Code::remote, fmt::format("greeting {}: {}", peer_name_, control_send_->failure)});
  if (state_ == State::waits_for_reply) {
    if (!control_receive_->done) return false;
    if (auto taken = take_reply(); !taken) return fail(std::move(taken).error());
    requests_->release(control_receive_);
  }
  requests_->release(control_send_);
  state_ = State::connected;
  return true;
}

Status UcxEndpoint::take_reply() {
  if (control_receive_->failure) return Error{Code::remote, fmt::format("the reply of {}: {}", peer_name_, control_receive_->failure)};
  const auto reply = GYRE_TRY(decode(MessageKind::reply, text(std::span(reply_).first(control_receive_->bytes))));
  peer_id_ = reply.id;
  return check_slots(reply.slots);
}

Fifo& UcxEndpoint::fifo() {
  if (!fifo_) {
    fifo_ = std::make_unique<PostedFifo>(*this, worker_, worker_.slots(), [this](const Error& error) {
      worker_.record({error.code, fmt::format("connection to {}: {}", peer_name_, error.what), error.file, error.line});
    });
  }
  return *fifo_;
}

Request* UcxEndpoint::send(uint64_t tag, std::span<const std::byte> data, const Memory* memory) {
  if (broken_) [[unlikely]]
    return requests_->refuse(broken_);
  if (state_ != State::connected) return nullptr;
  return requests_->send(endpoint_, wire_tag(TagKind::data, peer_id_, tag), data, kind_of(memory));
}

Request* UcxEndpoint::send_synchronous(uint64_t tag, std::span<const std::byte> data, const Memory* memory) {
  if (broken_) [[unlikely]]
    return requests_->refuse(broken_);
  if (state_ != State::connected) return nullptr;
  return requests_->send_synchronous(endpoint_, wire_tag(TagKind::data, peer_id_, tag), data, kind_of(memory));
}

Request* UcxEndpoint::receive(uint64_t tag, std::span<std::byte> data, const Memory* memory) {
  Request* request = requests_->receive(worker_.get(), wire_tag(TagKind::data, id_, tag), data, kind_of(memory));
  // What came before the break is still given out; nothing more will come.
  if (broken_ && request && !request->done) [[unlikely]]
    requests_->cancel_receives(worker_.get(), broken_);
  return request;
}

void UcxEndpoint::mark_broken(ucs_status_t status) {
  if (!broken_) broken_ = ucs_status_string(status);
}

void UcxEndpoint::look_at_break() {
  if (break_seen_ || (!broken_ && !peer_left_)) return;
  break_seen_ = true;
  if (peer_left_) {
    broken_ = peer_closed;
  } else {
    worker_.record({Code::remote, fmt::format("connection to {}: {}", peer_name_, broken_)});
  }
  requests_->cancel_receives(worker_.get(), broken_);
}

void UcxEndpoint::look_at_process() {
  if (watched_ || broken_) return;
  // Twice, with progress between them: its goodbye may lie unread.
  if (process_gone_) {
    broken_ = "the peer's process is gone";
    look_at_break();
  }
  process_gone_ = process_.gone();
}

UcxEndpoint::~UcxEndpoint() {
  if (!broken_ && !worker_.abandoned()) start_close();
  break_seen_ = true;  // from here on a break is our own doing
  for (auto*& operation : farewell_) worker_.flush(std::exchange(operation, nullptr));
  requests_->cancel_receives(worker_.get(), "this endpoint is being closed");
  if (goodbye_) ucp_request_cancel(worker_.get(), goodbye_);
  if (endpoint_) {
    for (const auto kind : {TagKind::reply, TagKind::data, TagKind::goodbye}) worker_.drop(wire_tag(kind, id_), any_tag);
    close();
  }
  worker_.remove(this);
  // A receive whose data is on its way can't be cancelled and ends with the endpoint; should it not, its memory stays.
  const auto limit = worker_.abandoned() || broken_off_ ? abandon_limit : cancel_limit;
  const bool waits = !broken_off_ || watched_;
  const bool ended = worker_.drive(waits ? limit : milliseconds(0), [&] { return requests_->under_way() == 0; });
  if (!watched_ && requests_->reads_left()) worker_.leave_behind();
  if (!ended) worker_.keep({std::move(requests_), std::move(fifo_), {}});
}

// Tells the peer that the coming loss of the connection is no failure, and sees our sends out. Over TCP, UCX's flush ends only when the
// peer has made progress, so with a peer that is busy elsewhere this takes time.
void UcxEndpoint::start_close() {
  if (std::exchange(closing_, true) || broken_ || !endpoint_) return;
  requests_->cancel_receives(worker_.get(), "this endpoint is being closed");
  ucp_request_param_t parameters{};
  if (peer_id_ != 0) farewell_[0] = ucp_tag_send_nbx(endpoint_, nullptr, 0, wire_tag(TagKind::goodbye, peer_id_), &parameters);
  farewell_[1] = ucp_ep_flush_nbx(endpoint_, &parameters);
}

bool UcxEndpoint::closed() {
  bool out = true;
  for (auto*& operation : farewell_) {
    if (UCS_PTR_IS_PTR(operation) && ucp_request_check_status(operation) == UCS_INPROGRESS) {
      out = false;
    } else {
      if (UCS_PTR_IS_PTR(operation)) ucp_request_free(operation);
      operation = nullptr;
    }
  }
  return out || broken_;
}

void UcxEndpoint::break_off(const char* reason) {
  if (!broken_) broken_ = reason;
  break_seen_ = closing_ = broken_off_ = true;
  requests_->cancel_receives(worker_.get(), reason);
  if (!endpoint_ || !watched_) return;
  close();
  endpoint_ = nullptr;
}

// A receive that has begun can't be cancelled, and the end of its endpoint by force does not end it (UCX 1.13): its data may still come, or
// lie in a socket. Sends by the network have ended with the endpoint; through shared memory they don't touch our memory once flushed,
// though the peer may read from it, which the kernel lets end in an error.
void UcxEndpoint::let_go() {
  bool flushed = true;
  if (endpoint_ && !(process_ && process_.gone())) {
    ucp_request_param_t parameters{};
    flushed = worker_.finish(ucp_ep_flush_nbx(endpoint_, &parameters), close_limit);
  }
  const bool received = worker_.drive(watched_ ? cancel_limit : close_limit, [&] { return requests_->receives_under_way() == 0; });
  if (!flushed || !received) worker_.stop();
}

void UcxEndpoint::close() {
  ucp_request_param_t parameters{};
  if (watched_) {
    // By force: the flush is behind us, and this also ends what a dead or silent peer left under way.
    parameters.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
    parameters.flags = UCP_EP_CLOSE_FLAG_FORCE;
  } else if ((broken_ && !peer_left_) || worker_.abandoned() || worker_.way().local) {
    return;  // can't be forced, and would wait for a peer that is dead or busy elsewhere: ends with the worker
  }
  worker_.finish(ucp_ep_close_nbx(endpoint_, &parameters), worker_.abandoned() ? abandon_limit : close_limit);
}

}  // namespace gyre::transport::ucx
