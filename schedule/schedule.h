// A Schedule: for every rank, channel and strand a program of steps, symbolic in size (a block is `chunks` pieces, whatever its bytes).
// Plain data, made by a Builder, proven by verify.h, run by run.h. It knows nothing of buffers, streams or sockets.
#pragma once
#include <span>
#include <string>
#include <vector>

#include "base/types.h"
#include "schedule/layout.h"
#include "schedule/step.h"

namespace gyre::schedule {

/// The steps of one rank on one strand of a channel, run in order. Strands of a rank run side by side: a tree's way up and its way down
/// are two, else a chunk could not go up while another comes down. Between two ranks, in one direction, a channel has one strand that
/// sends and one that receives, and their messages are matched by order.
struct Program {
  Rank rank = 0;
  uint32_t channel = 0;
  uint32_t strand = 0;
  std::vector<Step> steps;

  bool operator==(const Program&) const = default;
};

/// Chunk i of any buffer belongs to channel i % channels; channels share nothing.
struct Schedule {
  std::string family;
  Collective collective = Collective::all_reduce;
  int ranks = 1;
  Rank root = 0;
  uint32_t channels = 1;
  uint32_t strands = 1;           ///< of a channel
  uint32_t chunks = 1;            ///< pieces of a block
  uint32_t scratch = 0;           ///< chunks of a rank's scratch
  std::vector<Program> programs;  ///< [(channel * strands + strand) * ranks + rank]
  std::vector<Rank> peer_table;

  Layout layout() const { return {collective, ranks, root, chunks}; }
  std::span<const Rank> peers(Peers list) const { return {peer_table.data() + list.first, list.count}; }
  const Program& program(Rank rank, uint32_t channel, uint32_t strand = 0) const {
    return programs[(size_t{channel} * strands + strand) * static_cast<size_t>(ranks) + static_cast<size_t>(rank)];
  }
  /// Chunks in the longest message.
  uint32_t longest_message() const;
  bool operator==(const Schedule&) const = default;
};

/// Writes a Schedule, in one of two ways.
///
/// step() gives a step as it is, on the channel and strand that were chosen last.
///
/// reduce() and copy() say what flows between two ranks, round by round, on strand 0; the builder knows where each rank has its value
/// of a chunk, and gives it a place in scratch where the rank's output has none. They name chunks as the larger of input and output
/// does, so that chunk b * chunks + k is piece k of rank b's block wherever there are blocks. Not for all-to-all, in which every pair
/// of ranks has a block. A round's sends are emitted before its receives, else a rank would wait although it has data to send.
class Builder {
 public:
  Builder(std::string family, const Layout&, uint32_t channels, uint32_t strands = 1);

  /// All that follows is on this channel and strand.
  void channel(uint32_t channel, uint32_t strand = 0) { channel_ = channel, strand_ = strand; }
  void step(Rank rank, std::span<const Rank> from, Chunks src, Chunks dst, std::span<const Rank> to, uint32_t place = 0);

  /// From now on steps reduce their sources by the canonical tree, and what is not yet the whole lies in scratch: in an output, whose
  /// elements may be smaller than those of a partial sum, it has no room (verify.h).
  void ordered() { ordered_ = true; }

  /// What a reduction gives: all ranks' parts, or some of them.
  enum class Sum : uint8_t { whole, partial };
  /// `to` adds `from`'s values of the chunks to its own.
  void reduce(Rank from, Rank to, Chunks chunks, Sum sum = Sum::whole) { flow(from, to, chunks, true, sum); }
  /// `to` takes over `from`'s values of the chunks.
  void copy(Rank from, Rank to, Chunks chunks) { flow(from, to, chunks, false, Sum::whole); }
  void round();

  /// Where the rank has its values of these chunks now; what lies in several buffers is first brought into one by a copy.
  Chunks current(Rank rank, Chunks chunks);
  /// Where the rank is to put values of these chunks: its output where that has room for all, else its scratch.
  Chunks room(Rank rank, Chunks chunks, Sum sum = Sum::whole) const;

  /// The schedule; chunks of outputs that nothing has written are copied from where the rank has them.
  Schedule build() &&;

 private:
  void flow(Rank from, Rank to, Chunks chunks, bool reduces, Sum sum);
  Peers list(std::span<const Rank>);
  Program& program(Rank rank) {
    return schedule_
        .programs[(size_t{channel_} * schedule_.strands + strand_) * static_cast<size_t>(schedule_.ranks) + static_cast<size_t>(rank)];
  }
  void wrote(Rank rank, const Chunks& dst);
  uint32_t named(Rank rank, Buffer buffer, uint32_t chunk) const;
  Chunks in_buffer(Rank rank, Buffer buffer, Chunks chunks) const;
  size_t index(Rank rank, uint32_t chunk) const { return static_cast<size_t>(rank) * named_ + chunk; }

  struct Receive {
    Rank rank;
    Step step;
    Sum sum;
  };
  Schedule schedule_;
  Layout layout_;
  uint32_t named_;  // chunks of the larger of input and output
  uint32_t channel_ = 0;
  uint32_t strand_ = 0;
  bool ordered_ = false;
  std::vector<Buffer> current_;    // [rank, chunk]: where the rank's value is
  std::vector<bool> written_;      // [rank, chunk]: is in the output
  std::vector<Receive> receives_;  // of this round
};

}  // namespace gyre::schedule
