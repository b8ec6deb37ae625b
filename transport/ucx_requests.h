// Tagged sends and receives of UCX as transport Requests from a pool of fixed size, with those under way listed, so that a connection
// can cancel its receives and knows when nothing of it is left inside UCX. UCX's callbacks come from within ucp_worker_progress(), in the
// worker's thread. Private to the UCX backend.
#pragma once
#include <ucp/api/ucp.h>

#include <algorithm>
#include <vector>

#include "base/pool.h"
#include "transport/transport.h"

namespace gyre::transport::ucx {

// 64 bits of tag on the wire: kind (2) | id of the receiving connection or listener (22) | the caller's tag (40).
enum class TagKind : uint64_t { hello = 0, reply = 1, data = 2, goodbye = 3 };
inline constexpr int tag_bits = 40;
inline constexpr int id_bits = 22;
inline constexpr ucp_tag_t exact = ~ucp_tag_t{0};
/// Matches every message of one kind to one id.
inline constexpr ucp_tag_t any_tag = exact << tag_bits;

constexpr ucp_tag_t wire_tag(TagKind kind, uint32_t id, uint64_t tag = 0) {
  return static_cast<uint64_t>(kind) << (id_bits + tag_bits) | uint64_t{id} << tag_bits | (tag & ((uint64_t{1} << tag_bits) - 1));
}

class Requests {
 public:
  explicit Requests(size_t capacity) : pool_(capacity) { under_way_.reserve(capacity); }

  /// Null: the pool is empty. Otherwise a request, perhaps done already, perhaps failed.
  Request* send(ucp_ep_h, ucp_tag_t, std::span<const std::byte>, MemoryKind = MemoryKind::host);
  Request* send_synchronous(ucp_ep_h, ucp_tag_t, std::span<const std::byte>, MemoryKind = MemoryKind::host);
  Request* receive(ucp_worker_h, ucp_tag_t, std::span<std::byte>, MemoryKind = MemoryKind::host);
  Request* get(ucp_ep_h, std::span<std::byte> into, uint64_t from, ucp_rkey_h);
  /// Receives a message that ucp_tag_probe_nb has taken out.
  Request* receive_message(ucp_worker_h, ucp_tag_message_h, std::span<std::byte>);
  /// A request that is done and failed, for a connection that can't do it any more. `reason` is static text.
  Request* refuse(const char* reason);
  void release(Request* request) { pool_.give(static_cast<Entry*>(request)); }

  /// Cancels the receives under way; they fail with `reason` once UCX lets go of them, mostly at once.
  void cancel_receives(ucp_worker_h, const char* reason);
  size_t under_way() const { return under_way_.size(); }
  size_t receives_under_way() const {
    return count([](const Entry& entry) { return entry.kind == Kind::receive; });
  }
  /// A receive or get has failed or has not ended: of reads that it took apart, UCX (1.13) may hold some still.
  bool reads_left() const {
    return read_failed_ || count([](const Entry& entry) { return entry.kind != Kind::send; }) > 0;
  }

 private:
  enum class Kind : uint8_t { send, receive, get };
  struct Entry : Request {
    Requests* owner = nullptr;
    size_t index = 0;  // in under_way_
    Kind kind = Kind::send;
    const char* cancelled = nullptr;  // why
  };

  template <class Predicate>
  size_t count(Predicate predicate) const {
    return static_cast<size_t>(std::count_if(under_way_.begin(), under_way_.end(), [&](const Entry* entry) { return predicate(*entry); }));
  }
  Entry* take(Kind);
  ucp_request_param_t parameters(Entry&, MemoryKind = MemoryKind::host) const;
  Request* started(Entry&, ucs_status_ptr_t, size_t bytes);
  static void finish(Entry&, ucs_status_t, size_t bytes);
  static void on_sent(void* ucx_request, ucs_status_t, void* entry);
  static void on_received(void* ucx_request, ucs_status_t, const ucp_tag_recv_info_t*, void* entry);

  Pool<Entry> pool_;
  std::vector<Entry*> under_way_;
  bool read_failed_ = false;
};

}  // namespace gyre::transport::ucx
