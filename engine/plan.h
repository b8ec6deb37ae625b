// A call made concrete: a verified schedule, an element count, type and operation. Holds what every step needs to know of sizes: where a
// chunk begins, how it is cut into slices and the slices into rounds. Made once per call and algorithm, and kept.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/arguments.h"
#include "schedule/cut.h"
#include "schedule/relayed.h"
#include "schedule/renamed.h"
#include "schedule/verify.h"
#include "topo/shape.h"
#include "transport/transport.h"

namespace gyre::engine {

/// A schedule with its proofs, out of place and, where the collective has that, in place.
struct Proven {
  schedule::Schedule schedule;
  schedule::Proof proof;
  topo::Shape shape;                        ///< that it was made for, of positions
  std::vector<schedule::RankOrder> orders;  ///< as Choice::orders
  schedule::RankPairs missing;              ///< ranks whose messages to each other go by relays
  uint32_t slices = 1;                      ///< of a chunk in flight together, for which deadlock freedom was proven
  transport::Slots slots;                   ///< that it was verified for
  mutable std::optional<bool> lendable;     ///< Plan::lendable(), once it is known
};

/// Verifies a schedule for connections of these slots, buffered and posted, in place and not.
Result<std::shared_ptr<const Proven>> prove(schedule::Schedule, const transport::Slots&);
/// Builds and fuses the family's schedule, for the ranks in these orders (schedule/renamed.h; none: their numbers'), with relays between
/// those that do not reach each other (schedule/relayed.h), and verifies it.
Result<std::shared_ptr<const Proven>> prove(std::string_view family, const topo::Shape&, const transport::Slots&,
                                            const std::vector<schedule::RankOrder>& = {}, const schedule::RankPairs& missing = {});

/// Elements [first, first + count) of a buffer.
struct Piece {
  size_t first = 0;
  size_t count = 0;
};

/// "all_reduce count=8 type=float op=sum algorithm=ring": what all ranks must agree on, in words of which each may differ.
std::string in_words(const Call&, std::string_view algorithm);

class Plan {
 public:
  /// `unit_bytes`: what the bounds of chunks and slices are multiples of, unless a message of so many chunks must have smaller ones; by
  /// default a cache line. Error: a message of an element per chunk does not fit a slot, or there would be too many slices.
  static Result<Plan> make(std::shared_ptr<const Proven> proven, const Call& call, size_t slot_bytes, size_t unit_bytes = 64);

  const schedule::Schedule& schedule() const { return proven_->schedule; }
  const schedule::Proof& proof() const { return proven_->proof; }
  const topo::Shape& shape() const { return proven_->shape; }
  const std::vector<schedule::RankOrder>& orders() const { return proven_->orders; }
  const Call& call() const { return call_; }
  uint32_t slices() const { return cut_.slices; }  ///< per round
  uint32_t rounds() const { return cut_.rounds; }
  uint64_t hash() const { return hash_; }
  /// "all_reduce count=8 type=float op=sum algorithm=ring": what all ranks must agree on.
  const std::string& text() const { return text_; }
  /// Elements of a rank's scratch.
  size_t scratch() const { return (schedule().scratch + schedule().chunks - 1) / schedule().chunks * call_.count; }
  size_t scratch_bytes() const { return scratch() * widths_.scratch; }
  /// Whether messages may also be read from the sender's memory, when their receiver gets to that. Verified when it is first asked, since
  /// few calls lend any.
  bool lendable() const;
  /// Bytes of the longest message, at most.
  size_t message_bytes() const { return cut_.slice_elements * widest_message() * schedule().longest_message(); }
  /// Its sums are those of the canonical tree (kernels/canonical.h).
  bool ordered() const { return shape().ordered; }
  /// Bytes of an element in a message of this form, and in a buffer, where it may take less.
  size_t width(schedule::Form form) const { return widths_.message[static_cast<size_t>(form)]; }
  size_t width(schedule::Buffer buffer) const { return buffer == schedule::Buffer::scratch ? widths_.scratch : widths_.message[2]; }

  /// Slice `slice` of a chunk of any buffer, counted over all rounds; elements from the buffer's beginning.
  Piece piece(uint32_t chunk, uint32_t slice) const {
    const uint32_t chunks = schedule().chunks;
    const size_t block = chunk / chunks * call_.count;
    const size_t first = block + bounds_[chunk % chunks] + size_t{slice} * cut_.slice_elements;
    const size_t end = block + bounds_[chunk % chunks + 1];
    if (first >= end) return {end, 0};
    return {first, end - first < cut_.slice_elements ? end - first : cut_.slice_elements};
  }

 private:
  /// In bytes.
  struct Widths {
    size_t message[3] = {1, 1, 1};  // by form
    size_t scratch = 1;
  };
  Plan(std::shared_ptr<const Proven> proven, const Call& call);
  size_t widest_message() const;

  std::shared_ptr<const Proven> proven_;
  Call call_;
  Widths widths_;
  std::vector<size_t> bounds_;  // chunk c is [bounds_[c], bounds_[c+1])
  schedule::Cut cut_;
  uint64_t hash_ = 0;
  std::string text_;
};

/// Bounds of `chunks` contiguous pieces of `count` elements whose sizes differ by at most `unit` elements; the last takes what is odd.
std::vector<size_t> chunk_bounds(size_t count, uint32_t chunks, size_t unit);

}  // namespace gyre::engine
