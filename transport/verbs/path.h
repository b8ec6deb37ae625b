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

  /// `rail`: its number among the link's; `index`: the path's own.
  static Result<std::unique_ptr<Path>> open(Link&, const Rail&, uint8_t rail, uint8_t index, uint8_t generation);
  Path(Link& link, const Rail& opened, uint8_t rail, uint8_t index, uint8_t generation)
      : link_(link), rail_(opened), rail_number_(rail), index_(index), generation_(generation) {}
  Path(const Path&) = delete;
  Path& operator=(const Path&) = delete;
  ~Path() = default;

  PairCard card() const { return rail_.card(*pair_); }
  Status join(const PairCard& peer);
  const Rail& rail() const { return rail_; }
  uint8_t rail_number() const { return rail_number_; }
  uint8_t index() const { return index_; }
  uint8_t generation() const { return generation_; }
  bool alive() const { return alive_; }
  /// Nothing goes or comes any more but the completions of what was under way.
  void fail();
  /// After fail(): all that had come was seen.
  bool drained() const { return !alive_ && waiting_ == 0; }
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
  int write(const Write&, uint32_t immediate, Request* owner, uint8_t piece);

  /// What has ended with this signaled completion; owner null: nothing that anybody waits for.
  struct Ended {
    Request* owner = nullptr;
    uint8_t piece = 0;
  };
  Ended send_done();
  /// A receive has completed; now and then posts as many again.
  int receive_done();

  static uint64_t id(const Path* path, Kind kind) { return reinterpret_cast<uint64_t>(path) | static_cast<uint64_t>(kind); }
  static Path* path_of(uint64_t id) { return reinterpret_cast<Path*>(id & ~uint64_t{7}); }
  static Kind kind_of(uint64_t id) { return static_cast<Kind>(id & 7U); }

 private:
  int post(ibv_send_wr&, const Write&, bool signaled, Ended);
  int post_receives(uint32_t count);

  struct Signaled {
    uint64_t posted = 0;  // with all before it
    Ended what;
  };
  Link& link_;
  const Rail& rail_;
  const uint8_t rail_number_, index_, generation_;
  bool alive_ = true;
  QueuePair pair_;
  uint32_t sends_ = 0, receives_ = 0, inlined_ = 0;
  uint64_t posted_ = 0, done_ = 0, last_signaled_ = 0;
  std::vector<Signaled> signaled_;  // a ring
  uint64_t signaled_posted_ = 0, signaled_done_ = 0;
  uint32_t waiting_ = 0, consumed_ = 0;  // receives: posted and not complete; complete and not posted again
};

}  // namespace gyre::transport::verbs
