// One queue pair of a connection: what it has sent and not heard of, and the receives that wait for immediates. Sends complete in order;
// some are unsignaled, and are known to be done with the next signaled one.
#pragma once
#include <endian.h>

#include <cstdint>
#include <vector>

#include "transport/transport.h"
#include "transport/verbs/rail.h"

namespace gyre::transport::verbs {

class Link;

class Path {
 public:
  /// Told with a completion, in the lowest bits of wr_id.
  enum class Kind : uint8_t { send, receive };
  /// Offered: the peer may join it. Joined: it may bring messages, but takes none before it was heard to carry.
  enum class State : uint8_t { offered, joined, alive, failed };
  struct Place {
    uint8_t index = 0;       ///< among the link's paths
    uint8_t rail = 0;        ///< among its own rails
    uint8_t peers_rail = 0;  ///< among the peer's
    uint8_t sharing = 1;     ///< paths of this link on the same port
  };

  static Result<std::unique_ptr<Path>> open(Link&, Rail&, Place, uint32_t generation);
  Path(Link& link, Rail& rail, Place place, uint32_t generation) : link_(link), rail_(rail), place_(place), generation_(generation) {}
  Path(const Path&) = delete;
  Path& operator=(const Path&) = delete;
  ~Path();

  PairCard card() const;
  Status join(const PairCard& peer);
  /// It carries.
  void start() { state_ = State::alive; }
  /// Nothing goes or comes any more but the completions of what was under way.
  void fail();
  /// Its device will return nothing more.
  void write_off() { written_off_ = true; }

  Link& link() const { return link_; }
  Rail& rail() const { return rail_; }
  Place place() const { return place_; }
  uint8_t index() const { return place_.index; }
  uint32_t generation() const { return generation_; }
  State state() const { return state_; }
  bool alive() const { return state_ == State::alive; }
  /// Has failed, and all that had come was seen.
  bool out() const { return state_ == State::failed && (waiting_ == 0 || written_off_); }
  uint32_t number() const { return pair_->qp_num; }
  /// The slower end's, for this path.
  uint32_t mbit_per_s() const { return mbit_per_s_; }

  struct Write {
    const void* data = nullptr;
    uint32_t bytes = 0;
    uint32_t local_key = 0;  ///< not needed of what goes inline
    uint64_t address = 0;
    uint32_t remote_key = 0;
    bool of_gpu = false;  ///< the processor can't read it, so it never goes inline
  };
  /// For two: data and what tells of them.
  bool has_room() const { return posted_ - done_ + 2 <= sends_; }
  /// Packets of so long a write may pass each other: it goes without its immediate, which follows by itself.
  bool spreads(size_t bytes) const { return bytes > spread_above_; }
  /// As one write.
  bool takes(size_t bytes) const { return bytes <= longest_; }
  /// Nothing that will be heard of is under way.
  bool quiet() const { return signaled_posted_ == signaled_done_; }
  bool goes_inline(const Write& what) const { return what.bytes <= inlined_ && !what.of_gpu; }

  /// What has ended with a signaled completion; owner null: nothing that anybody waits for.
  struct Ended {
    Request* owner = nullptr;
    uint8_t piece = 0;
  };
  /// 0, or the reason, as errno, why nothing was posted.
  int write(const Write& what) { return post(IBV_WR_RDMA_WRITE, what, posted_ + 1 - last_signaled_ >= signaled_each_, {}); }
  int write_signaled(const Write& what, Ended whose) { return post(IBV_WR_RDMA_WRITE, what, true, whose); }
  [[gnu::always_inline]] int write(const Write& what, uint32_t immediate, Ended whose) {
    work_.imm_data = htobe32(immediate);
    return post(IBV_WR_RDMA_WRITE_WITH_IMM, what, true, whose);
  }
  Ended send_done() {
    const Signaled& oldest = signaled_[signaled_done_++ & signaled_mask_];
    done_ = oldest.posted;
    return {oldest.owner, oldest.piece};
  }
  /// A receive has completed; now and then posts as many again.
  int receive_done();

 private:
  [[gnu::always_inline]] int post(ibv_wr_opcode kind, const Write& what, bool signaled, Ended whose) {
    data_ = {reinterpret_cast<uint64_t>(what.data), what.bytes, what.local_key};
    work_.opcode = kind;
    work_.num_sge = what.bytes > 0 ? 1 : 0;
    work_.send_flags = (signaled ? unsigned{IBV_SEND_SIGNALED} : 0U) | (goes_inline(what) ? unsigned{IBV_SEND_INLINE} : 0U);
    work_.wr.rdma.remote_addr = what.address;
    work_.wr.rdma.rkey = what.remote_key;
    ibv_send_wr* bad = nullptr;
    if (const int error = ibv_post_send(pair_.get(), &work_, &bad); error != 0) [[unlikely]]
      return error;
    ++posted_;
    if (signaled) {
      last_signaled_ = posted_;
      signaled_[signaled_posted_++ & signaled_mask_] = {whose.owner, posted_, whose.piece};
    }
    return 0;
  }
  int post_receives(uint32_t count);
  uint64_t id(Kind kind) const { return name_ | static_cast<uint64_t>(kind); }

  struct Signaled {
    Request* owner = nullptr;
    uint32_t posted = 0;  // with all before it
    uint8_t piece = 0;
  };
  Link& link_;
  Rail& rail_;
  const Place place_;
  const uint32_t generation_;
  State state_ = State::offered;
  bool written_off_ = false;
  QueuePair pair_;
  uint64_t name_ = 0;
  uint32_t sends_ = 0, receives_ = 0, inlined_ = 0, longest_ = 0, spread_above_ = 0, mbit_per_s_ = 1;
  uint32_t posted_ = 0, done_ = 0, last_signaled_ = 0;  // counted on through zero
  ibv_send_wr work_{};                                  // posted again and again, with what differs
  ibv_sge data_{};
  std::vector<Signaled> signaled_;                  // a ring, as long as a power of two
  uint32_t signaled_mask_ = 0, signaled_each_ = 1;  // at least one in so many
  uint32_t signaled_posted_ = 0, signaled_done_ = 0;
  uint32_t waiting_ = 0, consumed_ = 0;  // receives: posted and not complete; complete and not posted again
};

}  // namespace gyre::transport::verbs
