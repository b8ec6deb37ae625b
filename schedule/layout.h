// What a collective means, in chunks: which buffers a rank has, what its output must hold, and which memory input and output share in
// place. Everything is NCCL's definition. A block is `chunks` chunks of the call's `count` elements; a buffer has one block, or one per
// rank in the order of ranks. A chunk's number modulo `chunks` is its place in its block, and so its size.
#pragma once
#include <cstddef>
#include <cstdint>

#include "base/types.h"
#include "schedule/step.h"

namespace gyre::schedule {

inline constexpr Rank every_rank = -1;

/// What an output chunk must hold: `chunk` of the input of `rank`, or the reduction of that chunk of every rank.
struct Part {
  Rank rank = every_rank;
  uint32_t chunk = 0;
};

struct Layout {
  Collective collective = Collective::all_reduce;
  int ranks = 1;
  Rank root = 0;        ///< of the rooted collectives
  uint32_t chunks = 1;  ///< of a block

  uint32_t input_blocks() const {
    const bool many = collective == Collective::reduce_scatter || collective == Collective::all_to_all || collective == Collective::scatter;
    return many ? static_cast<uint32_t>(ranks) : 1;
  }
  uint32_t output_blocks() const {
    const bool many = collective == Collective::all_gather || collective == Collective::all_to_all || collective == Collective::gather;
    return many ? static_cast<uint32_t>(ranks) : 1;
  }
  uint32_t input_chunks() const { return input_blocks() * chunks; }
  uint32_t output_chunks() const { return output_blocks() * chunks; }

  bool has_input(Rank rank) const { return (collective != Collective::broadcast && collective != Collective::scatter) || rank == root; }
  bool has_output(Rank rank) const { return (collective != Collective::reduce && collective != Collective::gather) || rank == root; }

  bool operator==(const Layout&) const = default;
  bool has_in_place() const { return collective != Collective::all_to_all; }
  /// Blocks of the shared memory before the input, and before the output, of a rank that has both.
  uint32_t input_offset(Rank rank) const {
    return collective == Collective::all_gather || collective == Collective::gather ? static_cast<uint32_t>(rank) : 0;
  }
  uint32_t output_offset(Rank rank) const {
    return collective == Collective::reduce_scatter || collective == Collective::scatter ? static_cast<uint32_t>(rank) : 0;
  }

  Part expected(Rank rank, uint32_t output_chunk) const {
    const uint32_t block = output_chunk / chunks;
    const uint32_t chunk = output_chunk % chunks;
    const auto own = static_cast<uint32_t>(rank);
    switch (collective) {
      case Collective::reduce_scatter:
        return {every_rank, own * chunks + chunk};
      case Collective::all_gather:
      case Collective::gather:
        return {static_cast<Rank>(block), chunk};
      case Collective::broadcast:
        return {root, chunk};
      case Collective::all_to_all:
        return {static_cast<Rank>(block), own * chunks + chunk};
      case Collective::scatter:
        return {root, own * chunks + chunk};
      default:
        return {every_rank, chunk};
    }
  }
};

/// Numbers a rank's memory, so that input and output have the same number where they are the same memory.
class Cells {
 public:
  Cells() = default;
  Cells(const Layout& layout, uint32_t scratch, bool in_place)
      : layout_(layout),
        in_place_(in_place),
        outputs_(layout.input_chunks()),
        scratch_(outputs_ + layout.output_chunks()),
        count_(scratch_ + scratch) {}

  bool operator==(const Cells&) const = default;

  /// Of one rank.
  size_t count() const { return count_; }
  size_t of(Rank rank, Buffer buffer, uint32_t chunk) const {
    if (buffer == Buffer::scratch) return scratch_ + chunk;
    const bool shared = in_place_ && layout_.has_input(rank) && layout_.has_output(rank);
    if (!shared) return (buffer == Buffer::input ? 0 : outputs_) + chunk;
    const uint32_t offset = buffer == Buffer::input ? layout_.input_offset(rank) : layout_.output_offset(rank);
    return size_t{offset} * layout_.chunks + chunk;  // reaches into what would be the other buffer's cells, which are then unused
  }

 private:
  Layout layout_;
  bool in_place_ = false;
  size_t outputs_ = 0;
  size_t scratch_ = 0;
  size_t count_ = 0;
};

}  // namespace gyre::schedule
