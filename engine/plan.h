// A call made concrete: a verified schedule, an element count, type and operation. Holds what every step needs to know of sizes: where a
// chunk begins, how it is cut into slices and the slices into rounds. Made once per (count, type, op, algorithm) and kept.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "base/types.h"
#include "schedule/verify.h"
#include "transport/transport.h"

namespace gyre::engine {

/// A schedule with its proofs, out of place and in place.
struct Proven {
  schedule::Schedule schedule;
  schedule::Proof proof;
  uint32_t slices = 1;  ///< of a chunk in flight together, for which deadlock freedom was proven
};

/// Verifies a schedule for connections of these slots, buffered and posted, in place and not.
Result<std::shared_ptr<const Proven>> prove(schedule::Schedule, const transport::Slots&);
/// Builds and fuses the family's schedule, and verifies it.
Result<std::shared_ptr<const Proven>> prove(std::string_view family, int ranks, uint32_t channels, const transport::Slots&);

/// Elements [first, first + count) of a buffer.
struct Piece {
  size_t first = 0;
  size_t count = 0;
};

struct Call {
  Collective collective = Collective::all_reduce;
  size_t count = 0;
  DataType type = DataType::float32;
  ReduceOp op = ReduceOp::sum;

  bool operator==(const Call&) const = default;
};

class Plan {
 public:
  /// `unit_bytes`: what the bounds of chunks and slices are multiples of; by default a cache line.
  Plan(std::shared_ptr<const Proven> proven, const Call& call, size_t slot_bytes, size_t unit_bytes = 64);

  const schedule::Schedule& schedule() const { return proven_->schedule; }
  const schedule::Proof& proof() const { return proven_->proof; }
  const Call& call() const { return call_; }
  uint32_t slices() const { return slices_; }  ///< per round
  uint32_t rounds() const { return rounds_; }
  uint64_t hash() const { return hash_; }
  /// "count=8 type=float op=sum algorithm=ring": what all ranks must agree on.
  const std::string& text() const { return text_; }

  /// Slice `slice` of a chunk, counted over all rounds.
  Piece piece(uint32_t chunk, uint32_t slice) const {
    const size_t first = bounds_[chunk] + slice * slice_elements_;
    const size_t end = bounds_[chunk + 1];
    if (first >= end) return {end, 0};
    return {first, end - first < slice_elements_ ? end - first : slice_elements_};
  }

 private:
  std::shared_ptr<const Proven> proven_;
  Call call_;
  std::vector<size_t> bounds_;  // chunk c is [bounds_[c], bounds_[c+1])
  size_t slice_elements_ = 1;
  uint32_t slices_ = 1;
  uint32_t rounds_ = 1;
  uint64_t hash_ = 0;
  std::string text_;
};

/// Bounds of `chunks` contiguous pieces of `count` elements whose sizes differ by at most `unit` elements; the last takes what is odd.
std::vector<size_t> chunk_bounds(size_t count, uint32_t chunks, size_t unit);

}  // namespace gyre::engine
