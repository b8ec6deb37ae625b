// What UCX is told with each request, by one that only notes it.
#include "transport/ucx_requests.h"

#include <array>

#include "test/catch.h"

using gyre::transport::MemoryKind;
using gyre::transport::ucx::Requests;

namespace {

ucp_request_param_t told;

ucs_status_ptr_t note(const ucp_request_param_t* parameters) {
  told = *parameters;
  return UCS_STATUS_PTR(UCS_OK);
}

/// UCS_MEMORY_TYPE_UNKNOWN: nothing was said, and UCX looks for itself.
ucs_memory_type_t told_type() {
  return (told.op_attr_mask & UCP_OP_ATTR_FIELD_MEMORY_TYPE) != 0 ? told.memory_type : UCS_MEMORY_TYPE_UNKNOWN;
}

}  // namespace

extern "C" {
ucs_status_ptr_t ucp_tag_send_nbx(ucp_ep_h, const void*, size_t, ucp_tag_t, const ucp_request_param_t* p) { return note(p); }
ucs_status_ptr_t ucp_tag_send_sync_nbx(ucp_ep_h, const void*, size_t, ucp_tag_t, const ucp_request_param_t* p) { return note(p); }
ucs_status_ptr_t ucp_tag_recv_nbx(ucp_worker_h, void*, size_t, ucp_tag_t, ucp_tag_t, const ucp_request_param_t* p) { return note(p); }
ucs_status_ptr_t ucp_get_nbx(ucp_ep_h, void*, size_t, uint64_t, ucp_rkey_h, const ucp_request_param_t* p) { return note(p); }
ucs_status_ptr_t ucp_tag_msg_recv_nbx(ucp_worker_h, void*, size_t, ucp_tag_message_h, const ucp_request_param_t* p) { return note(p); }
void ucp_request_free(void*) {}
void ucp_request_cancel(ucp_worker_h, void*) {}
const char* ucs_status_string(ucs_status_t) { return ""; }
}

TEST_CASE("ucx: each request says where its memory lies, so that UCX need not ask CUDA") {
  Requests requests(16);
  std::array<std::byte, 8> data{};
  for (const auto& [kind, type] : {std::pair{MemoryKind::host, UCS_MEMORY_TYPE_HOST}, {MemoryKind::cuda, UCS_MEMORY_TYPE_CUDA}}) {
    requests.send(nullptr, 0, data, kind);
    CHECK(told_type() == type);
    requests.send_synchronous(nullptr, 0, data, kind);
    CHECK(told_type() == type);
    requests.receive(nullptr, 0, data, kind);
    CHECK(told_type() == type);
  }
  requests.get(nullptr, data, 0, nullptr);
  CHECK(told_type() == UCS_MEMORY_TYPE_HOST);
  told = {};
  requests.receive_message(nullptr, nullptr, data);
  CHECK(told_type() == UCS_MEMORY_TYPE_HOST);
}
