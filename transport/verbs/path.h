// One queue pair of a connection: what it has sent and not heard of, and the receives that wait for immediates. Sends complete in order;
// some are unsignaled, and are known to be done with the next signaled one.
#pragma once
#include <array>
#include <cstdint>
#include <vector>

#include "transport/transport.h"
#include "transport/verbs/rail.h"

namespace gyre::transport::verbs {

class Link;

class Path {
 public:
  /// Told with a completion, in wr_id: this path and what it was.
  enum class Kind : uint8_t { send, receive };

  static Result<std::unique_ptr<Path>> open(Link&, const Rail&, uint8_t number);
  Path(Link& link, const Rail& rail, uint8_t number) : link_(link), rail_(rail), number_(number) {}
  Path(const Path&) = delete;
  Path& operator=(const Path&) = delete;
  ~Path() = default;

  PairCard card() const { return rail_.card(*pair_); }
  Status join(const PairCard& peer);
  const Rail& rail() const { return rail_; }
  uint8_t number() const { return number_; }
  Link& link() const { return link_; }
  ibv_qp& pair() const { return *pair_; }

  struct Write {
    const void* data = nullptr;
    uint32_t bytes = 0;
    uint32_t local_key = 0;  ///< not needed of what goes inline
    uint64_t address = 0;
    uint32_t remote_key = 0;
  };
  bool has_room() const { return posted_ - done_ < sends_; }
  bool goes_inline(size_t bytes) const { return bytes <= inlined_; }
  /// Null or the reason, as errno, why nothing was posted.
  int write(const Write&);
  int write(const Write&, uint32_t immediate, Request* owner);

  /// Whose send has ended with this signaled completion, or null.
  Request* send_done();
  /// A receive was consumed; now and then posts as many again.
  int receive_done();

  static uint64_t id(const Path* path, Kind kind) { return reinterpret_cast<uint64_t>(path) | static_cast<uint64_t>(kind); }
  static Path* path_of(uint64_t id) { return reinterpret_cast<Path*>(id & ~uint64_t{7}); }
  static Kind kind_of(uint64_t id) { return static_cast<Kind>(id & 7U); }

 private:
  int post(ibv_send_wr&, const Write&, bool signaled, Request* owner);
  int post_receives(uint32_t count);

  struct Signaled {
    uint64_t posted = 0;  // with all before it
    Request* owner = nullptr;
  };
  Link& link_;
  const Rail& rail_;
  const uint8_t number_;
  QueuePair pair_;
  uint32_t sends_ = 0, receives_ = 0, inlined_ = 0;
  uint64_t posted_ = 0, done_ = 0, last_signaled_ = 0;
  std::vector<Signaled> signaled_;  // a ring
  uint64_t signaled_posted_ = 0, signaled_done_ = 0;
  uint32_t consumed_ = 0;
};

}  // namespace gyre::transport::verbs
