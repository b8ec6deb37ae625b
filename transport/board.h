// Where the ranks of one host meet: each has a few slots that all others read, one per call in turn, and a count of the calls that it is
// done with. A slot's first line holds the flag and up to 48 bytes, so that a small call costs one line transfer per pair.
//
//   rank:  | done (64) | slot 0: | sequence | word | 48 bytes | slot_bytes … | slot 1 …
//
// `sequence` is the number of the call, from 1, stored last with release. A slot may be written again when every rank is done with the
// call that it was for. Used by one thread per rank; nothing here waits. It must not know: collectives.
#pragma once
#include <atomic>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/types.h"
#include "transport/shared_memory.h"

namespace gyre::transport {

class Board {
 public:
  static constexpr uint32_t slots = 8;
  static constexpr size_t line_bytes = 48;         ///< of a slot, that travel with its flag
  static constexpr size_t slot_bytes = 32 * 1024;  ///< of a slot, behind its line

  struct alignas(64) Line {
    std::atomic<uint64_t> sequence;
    uint64_t word;
    std::byte data[line_bytes];
  };

  static Result<std::unique_ptr<Board>> create(Rank rank, int ranks);
  std::string address() const { return parts_[static_cast<size_t>(rank_)].memory->address(); }
  /// Maps a peer's part.
  Status open(Rank peer, std::string_view address);

  /// This rank's slot for a call: null while a peer is not done with the call that had it before.
  Line* slot(uint64_t sequence);
  /// Shows the slot to all. `word`: what they must agree on.
  void publish(uint64_t sequence, uint64_t word) {
    Line& line = at(rank_, sequence);
    line.word = word;
    line.sequence.store(sequence, std::memory_order_release);
  }
  /// The peer's slot for a call, or null. A later call's is never there: this rank was not done yet.
  const Line* arrived(Rank peer, uint64_t sequence) {
    const Line& line = at(peer, sequence);
    if (line.sequence.load(std::memory_order_acquire) != sequence) return nullptr;
    Part& part = parts_[static_cast<size_t>(peer)];
    if (part.done + 1 < sequence) part.done = sequence - 1;  // who begins a call is done with those before
    return &line;
  }
  /// What lies behind a line.
  static const std::byte* behind(const Line& line) { return reinterpret_cast<const std::byte*>(&line + 1); }
  static std::byte* behind(Line& line) { return reinterpret_cast<std::byte*>(&line + 1); }

  void finish(uint64_t sequence) { done(rank_).store(sequence, std::memory_order_release); }
  bool finished(Rank peer, uint64_t sequence) {
    Part& part = parts_[static_cast<size_t>(peer)];
    if (part.done >= sequence) return true;
    part.done = done(peer).load(std::memory_order_acquire);
    return part.done >= sequence;
  }
  int ranks() const { return static_cast<int>(parts_.size()); }

 private:
  struct Part {
    std::unique_ptr<SharedMemory> memory;
    uint64_t done = 0;  ///< of the peer, as far as known
  };
  static constexpr size_t stride = sizeof(Line) + slot_bytes;
  static constexpr size_t footprint = sizeof(Line) + slots * stride;

  explicit Board(Rank rank, int ranks) : rank_(rank), parts_(static_cast<size_t>(ranks)) {}
  std::byte* base(Rank rank) const { return parts_[static_cast<size_t>(rank)].memory->data(); }
  std::atomic<uint64_t>& done(Rank rank) const { return *reinterpret_cast<std::atomic<uint64_t>*>(base(rank)); }
  Line& at(Rank rank, uint64_t sequence) const { return *reinterpret_cast<Line*>(base(rank) + sizeof(Line) + (sequence % slots) * stride); }

  Rank rank_;
  std::vector<Part> parts_;  // by rank
};

}  // namespace gyre::transport
