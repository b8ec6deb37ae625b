// A Schedule: for every rank and channel a program of steps, symbolic in size (a buffer is `chunks` pieces, whatever its bytes). Plain
// data, made by a Builder, proven by verify.h, run by run.h. It knows nothing of buffers, streams or sockets.
#pragma once
#include <span>
#include <string>
#include <vector>

#include "base/types.h"
#include "schedule/step.h"

namespace gyre::schedule {

/// The steps of one rank on one channel, run in order.
struct Program {
  Rank rank = 0;
  uint32_t channel = 0;
  std::vector<Step> steps;
};

struct Schedule {
  std::string family;
  Collective collective = Collective::all_reduce;
  int ranks = 1;
  uint32_t channels = 1;
  uint32_t chunks = 1;            ///< pieces of input and of output
  std::vector<Program> programs;  ///< [channel * ranks + rank]
  std::vector<Rank> peer_table;

  std::span<const Rank> peers(Peers list) const { return {peer_table.data() + list.first, list.count}; }
  const Program& program(Rank rank, uint32_t channel) const {
    return programs[channel * static_cast<size_t>(ranks) + static_cast<size_t>(rank)];
  }
  /// Chunks in the longest message.
  uint32_t longest_message() const;
};

/// Writes a Schedule. Messages between two ranks on a channel are matched by their order.
///
/// Two ways to write: step() gives a step as it is; reduce() and copy() say what flows between two ranks, round by round, and the
/// builder knows where each rank has its current value of a chunk. A round's sends are emitted before its receives, else a rank
/// would wait although it has data to send.
class Builder {
 public:
  Builder(std::string family, int ranks, uint32_t channels, uint32_t chunks);

  /// All that follows is on this channel.
  void channel(uint32_t channel) { channel_ = channel; }
  void step(Rank rank, std::span<const Rank> from, Chunks src, Chunks dst, std::span<const Rank> to, uint32_t place = 0);

  /// `to` adds `from`'s value of the chunk to its own.
  void reduce(Rank from, Rank to, uint32_t chunk) { flow(from, to, chunk, true); }
  /// `to` takes over `from`'s value of the chunk.
  void copy(Rank from, Rank to, uint32_t chunk) { flow(from, to, chunk, false); }
  void round();

  /// The schedule; chunks whose output nothing has written are copied from the input (the only rank of a job).
  Schedule build() &&;

 private:
  void flow(Rank from, Rank to, uint32_t chunk, bool reduces);
  Peers list(std::span<const Rank>);
  Program& program(Rank rank) { return schedule_.programs[channel_ * static_cast<size_t>(schedule_.ranks) + static_cast<size_t>(rank)]; }
  size_t index(Rank rank, uint32_t chunk) const { return static_cast<size_t>(rank) * schedule_.chunks + chunk; }

  struct Receive {
    Rank rank;
    Step step;
  };
  Schedule schedule_;
  uint32_t channel_ = 0;
  std::vector<Buffer> current_;    // [rank, chunk]: where the rank's value is
  std::vector<bool> written_;      // [rank, chunk]: output has been written
  std::vector<Receive> receives_;  // of this round
};

}  // namespace gyre::schedule
