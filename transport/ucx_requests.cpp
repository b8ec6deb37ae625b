#include "transport/ucx_requests.h"

namespace gyre::transport::ucx {

Requests::Entry* Requests::take(Kind kind) {
  Entry* entry = pool_.take();
  if (!entry) return nullptr;
  entry->owner = this;
  entry->kind = kind;
  entry->index = under_way_.size();
  under_way_.push_back(entry);
  return entry;
}

// A UCX that is not told the type of memory may ask CUDA, which can wait for the very collective whose message this is.
ucp_request_param_t Requests::parameters(Entry& entry, MemoryKind kind) const {
  ucp_request_param_t parameters{};
  parameters.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA | UCP_OP_ATTR_FIELD_MEMORY_TYPE;
  parameters.user_data = &entry;
  parameters.memory_type = kind == MemoryKind::cuda ? UCS_MEMORY_TYPE_CUDA : UCS_MEMORY_TYPE_HOST;
  if (entry.kind == Kind::receive) {
    // A receive done at once would have to tell its length through recv_info, which UCX 1.13 leaves empty for a message that came in
    // parts. The callback has it always.
    parameters.op_attr_mask |= UCP_OP_ATTR_FLAG_NO_IMM_CMPL;
    parameters.cb.recv = on_received;
  } else {
    parameters.cb.send = on_sent;
  }
  return parameters;
}

Request* Requests::send(ucp_ep_h endpoint, ucp_tag_t tag, std::span<const std::byte> data, MemoryKind kind) {
  Entry* entry = take(Kind::send);
  if (!entry) return nullptr;
  const auto parameters = this->parameters(*entry, kind);
  return started(*entry, ucp_tag_send_nbx(endpoint, data.data(), data.size(), tag, &parameters), data.size());
}

Request* Requests::send_synchronous(ucp_ep_h endpoint, ucp_tag_t tag, std::span<const std::byte> data, MemoryKind kind) {
  Entry* entry = take(Kind::send);
  if (!entry) return nullptr;
  const auto parameters = this->parameters(*entry, kind);
  return started(*entry, ucp_tag_send_sync_nbx(endpoint, data.data(), data.size(), tag, &parameters), data.size());
}

Request* Requests::receive(ucp_worker_h worker, ucp_tag_t tag, std::span<std::byte> data, MemoryKind kind) {
  Entry* entry = take(Kind::receive);
  if (!entry) return nullptr;
  const auto parameters = this->parameters(*entry, kind);
  return started(*entry, ucp_tag_recv_nbx(worker, data.data(), data.size(), tag, exact, &parameters), 0);
}

Request* Requests::get(ucp_ep_h endpoint, std::span<std::byte> into, uint64_t from, ucp_rkey_h key) {
  Entry* entry = take(Kind::get);
  if (!entry) return nullptr;
  const auto parameters = this->parameters(*entry);
  return started(*entry, ucp_get_nbx(endpoint, into.data(), into.size(), from, key, &parameters), into.size());
}

Request* Requests::receive_message(ucp_worker_h worker, ucp_tag_message_h message, std::span<std::byte> data) {
  Entry* entry = take(Kind::receive);
  if (!entry) return nullptr;
  const auto parameters = this->parameters(*entry);
  return started(*entry, ucp_tag_msg_recv_nbx(worker, data.data(), data.size(), message, &parameters), 0);
}

Request* Requests::refuse(const char* reason) {
  Request* request = pool_.take();
  if (!request) return nullptr;
  request->done = true;
  request->failure = reason;
  return request;
}

// A null pointer or a status is UCX's "done at once", without a callback. A callback may also come before UCX has returned.
Request* Requests::started(Entry& entry, ucs_status_ptr_t status, size_t bytes) {
  if (!UCS_PTR_IS_PTR(status)) {
    finish(entry, UCS_PTR_STATUS(status), bytes);
  } else if (!entry.done) {
    entry.handle = status;
  }
  return &entry;
}

void Requests::finish(Entry& entry, ucs_status_t status, size_t bytes) {
  entry.done = true;
  entry.handle = nullptr;
  entry.bytes = status == UCS_OK ? bytes : 0;
  if (status == UCS_ERR_MESSAGE_TRUNCATED) entry.code = Code::invalid_usage;
  if (status != UCS_OK) entry.failure = status == UCS_ERR_CANCELED && entry.cancelled ? entry.cancelled : ucs_status_string(status);
  if (entry.kind != Kind::send && status != UCS_OK && status != UCS_ERR_CANCELED && status != UCS_ERR_MESSAGE_TRUNCATED)
    entry.owner->read_failed_ = true;
  auto& under_way = entry.owner->under_way_;
  under_way[entry.index] = under_way.back();
  under_way[entry.index]->index = entry.index;
  under_way.pop_back();
}

void Requests::on_sent(void* ucx_request, ucs_status_t status, void* entry) {
  finish(*static_cast<Entry*>(entry), status, 0);
  ucp_request_free(ucx_request);
}

void Requests::on_received(void* ucx_request, ucs_status_t status, const ucp_tag_recv_info_t* info, void* entry) {
  finish(*static_cast<Entry*>(entry), status, status == UCS_OK ? info->length : 0);
  ucp_request_free(ucx_request);
}

void Requests::cancel_receives(ucp_worker_h worker, const char* reason) {
  // Backwards: the callback of a cancelled request puts the last entry, already visited, in its place.
  for (size_t i = under_way_.size(); i > 0; --i) {
    Entry& entry = *under_way_[i - 1];
    if (entry.kind != Kind::receive || entry.cancelled) continue;
    entry.cancelled = reason;
    ucp_request_cancel(worker, entry.handle);
  }
}

}  // namespace gyre::transport::ucx
