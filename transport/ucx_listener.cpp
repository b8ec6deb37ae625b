#include "base/log.h"
#include "transport/ucx_worker.h"

namespace gyre::transport::ucx {

// A message of any length may come: what is too long for a hello is received into nothing, which takes it out of UCX's queue.
void UcxListener::take_hello() {
  ucp_tag_recv_info_t info;
  auto* message = ucp_tag_probe_nb(worker_.get(), wire_tag(TagKind::hello, id_), any_tag, 1, &info);
  if (!message) return;
  hello_.resize(info.length <= max_message_bytes ? info.length : 0);
  receive_ = requests_->receive_message(worker_.get(), message, hello_);
}

Result<std::unique_ptr<Endpoint>> UcxListener::accept() {
  if (!receive_) take_hello();
  if (!receive_ || !receive_->done) return std::unique_ptr<Endpoint>();
  const char* failure = receive_->failure;
  requests_->release(receive_);
  receive_ = nullptr;
  // A stranger's message must not break a listener that others use.
  if (failure) {
    log::warn("ucx: a hello was dropped: {}", failure);
    return std::unique_ptr<Endpoint>();
  }
  const auto hello = decode(MessageKind::hello, text(hello_));
  if (!hello) {
    log::warn("ucx: a hello was dropped: {}", hello.error().what);
    return std::unique_ptr<Endpoint>();
  }
  return UcxEndpoint::open(worker_, UcxEndpoint::Side::accepts, *hello, hello->hello);
}

UcxListener::~UcxListener() {
  requests_->cancel_receives(worker_.get(), "the listener was closed");
  const bool empty = worker_.drive(std::chrono::milliseconds(200), [&] { return requests_->under_way() == 0; });
  if (!empty) worker_.keep({std::move(requests_), nullptr, std::move(hello_)});
}

}  // namespace gyre::transport::ucx
