// Where the ranks of one host meet: each has lines that all others read, one per call in turn, with the flag and up to 48 bytes, so that a
// small call costs one line transfer per pair; room for more behind each line, and for much in fewer slots; a bounce buffer, on which
// others work as on a rank's own memory; and a count of the calls that it is done with, as far as it has told, with what it says of the
// last ones.
//
//   rank:  | said (64) | line 0: sequence, word, 48 bytes | room 0 (4 KiB) | line 1 … | slot 0 (32 KiB) | slot 1 | … | bounce buffer |
//
// `sequence` is the number of the call, or of a piece of one, from 1, stored last with release. A line may be written again when every rank
// is done with the call that it was for, a slot too; there are many lines, so that who waits for nobody (the root of a broadcast) can run
// ahead while others have no processor. Used by one thread per rank; nothing here waits. It must not know: collectives.
#pragma once
#include <algorithm>
#include <atomic>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/types.h"
#include "transport/attach.h"
#include "transport/doorbell.h"
#include "transport/shared_memory.h"

namespace gyre::transport {

class Board {
 public:
  static constexpr uint32_t lines = 64, slots = 8;
  static constexpr uint32_t told_every = 8;        ///< calls that only show something
  static constexpr size_t line_bytes = 48;         ///< that travel with the flag
  static constexpr size_t room_bytes = 4096;       ///< behind a line
  static constexpr size_t slot_bytes = 32 * 1024;  ///< the most that a call can show

  struct alignas(64) Line {
    std::atomic<uint64_t> sequence;
    uint64_t word;
    std::byte data[line_bytes];
  };

  static Result<std::unique_ptr<Board>> create(Rank rank, int ranks, size_t bounce_bytes = 0);
  /// What a rank's part takes.
  static size_t part_bytes(size_t bounce_bytes = 0) { return SharedMemory::footprint(bounce_at + bounce_bytes); }
  size_t bounce_bytes() const { return bounce_bytes_; }
  std::string address() const { return parts_[static_cast<size_t>(rank_)].memory->address(); }
  /// Maps a peer's part.
  Status open(Rank peer, std::string_view address);

  /// This rank's line for a call: null while a peer is not done with the call that had it before, or the place for `bytes` beside it.
  Line* line(uint64_t sequence, size_t bytes) {
    const uint32_t before = bytes <= room_bytes ? lines : slots;
    const bool free = sequence <= before || sequence - before <= done_by_all_ || all_finished(sequence - before);
    return free ? &at(rank_, sequence) : nullptr;
  }
  /// Where so many bytes of a call lie that a rank shows beside its line.
  std::byte* beside(Rank rank, uint64_t sequence, size_t bytes) const {
    return bytes <= room_bytes ? reinterpret_cast<std::byte*>(&at(rank, sequence) + 1)
                               : base(rank) + slots_at + (sequence % slots) * slot_bytes;
  }
  /// A rank's slots together, aligned to a page; zeros before the first call.
  std::byte* all_slots(Rank rank) const { return base(rank) + slots_at; }
  /// A rank's bounce buffer. Free again for it when all others have finished the call that it was for; in calls in which nobody shows
  /// anything there it is the rank's own.
  std::byte* bounce(Rank rank) const { return base(rank) + bounce_at; }
  /// Shows the line to all. `word`: what they must agree on.
  void publish(uint64_t sequence, uint64_t word) {
    Line& line = at(rank_, sequence);
    line.word = word;
    line.sequence.store(sequence, std::memory_order_release);
    if (bell_ != nullptr) bell_->ring_all();
  }
  /// This rank's line for a call to come, and the beginning of so many bytes beside it, are written soon: they are taken now from the
  /// caches of those who read them for an earlier call, since a store that waits for its line holds up all that follow.
  void claim(uint64_t sequence, size_t bytes) const {
    constexpr size_t most = 512;  // more gains nothing
    const auto* line = reinterpret_cast<const std::byte*>(&at(rank_, sequence));
    const size_t behind = bytes <= line_bytes || bytes > room_bytes ? 0 : std::min(bytes, most);
    for (size_t offset = 0; offset < sizeof(Line) + behind; offset += sizeof(Line)) prefetch_to_write(line + offset);
  }
  /// The peer's line for a call is looked for soon.
  void expect(Rank peer, uint64_t sequence) const { __builtin_prefetch(&at(peer, sequence)); }
  /// The peer's line for a call, or null. A later call's is never there: this rank was not done yet.
  const Line* arrived(Rank peer, uint64_t sequence) {
    const Line& line = at(peer, sequence);
    if (line.sequence.load(std::memory_order_acquire) != sequence) return nullptr;
    Part& part = parts_[static_cast<size_t>(peer)];
    if (part.done + 1 < sequence) part.done = sequence - 1;  // who begins a call is done with those before
    return &line;
  }

  /// finish() of a call that others want nothing of but room for later ones: they are told of every eighth, so that one that waits for room
  /// (the root of broadcasts) does not take the cache line away at each. `bytes`: that a rank has shown.
  void finish_staged(uint64_t sequence, size_t bytes) {
    static_assert(told_every <= slots && slots <= lines);  // at call s all know that it is done with s - 8, and none wants more
    if (sequence % told_every == 0 || bytes > room_bytes) finish(sequence);
  }
  void finish(uint64_t sequence) {
    done(rank_).store(sequence, std::memory_order_release);
    if (bell_ != nullptr) bell_->ring_all();
  }
  /// finish() of one that looks next who else has: what it has read of others' memory, it read before they say so. `refuses`: to have all
  /// know that it could not.
  void finish_reading(uint64_t sequence, bool refuses) {
    if (refuses) head(rank_).refused.store(sequence, std::memory_order_relaxed);
    finish(sequence);
    std::atomic_thread_fence(std::memory_order_acquire);
  }
  /// After finish_reading(): who has not looked yet is not to take what it reads of this rank's memory from now on.
  void withdraw(uint64_t sequence) {
    head(rank_).withdrawn.store(sequence, std::memory_order_relaxed);
    std::atomic_thread_fence(std::memory_order_release);
  }
  bool withdrawn(Rank rank, uint64_t sequence) const { return head(rank).withdrawn.load(std::memory_order_acquire) == sequence; }
  /// Of a rank that has finished the call.
  bool refused(Rank rank, uint64_t sequence) const { return head(rank).refused.load(std::memory_order_relaxed) == sequence; }
  /// False also of a small staged call that the peer has not told of yet.
  bool finished(Rank peer, uint64_t sequence) {
    Part& part = parts_[static_cast<size_t>(peer)];
    if (part.done >= sequence) return true;
    part.done = std::max(part.done, done(peer).load(std::memory_order_acquire));
    return part.done >= sequence;
  }
  /// What reaches the ordinary memory of all ranks, by rank; empty: not all can, or should.
  void attach(std::vector<Attached> processes) { attached_ = std::move(processes); }
  const std::vector<Attached>& attached() const { return attached_; }
  /// From now on publish() and finish() wake by it who waits for that; it must outlive this.
  void rings(const Doorbell& bell) { bell_ = &bell; }
  int ranks() const { return static_cast<int>(parts_.size()); }

 private:
  struct Part {
    std::unique_ptr<SharedMemory> memory;
    std::byte* base = nullptr;  ///< the memory's
    uint64_t done = 0;          ///< of the peer, as far as known
  };
  struct alignas(64) Head {
    std::atomic<uint64_t> done;
    std::atomic<uint64_t> refused, withdrawn;  // the last such call
  };
  static constexpr size_t stride = sizeof(Line) + room_bytes;
  static constexpr size_t slots_at = (sizeof(Line) + lines * stride + 4095) / 4096 * 4096;
  static constexpr size_t bounce_at = slots_at + slots * slot_bytes;

  // The builtin is a prefetch to read where the compiler may not count on this instruction, which processors without it pass over.
  static void prefetch_to_write(const std::byte* line) {
#if defined(__x86_64__)
    asm volatile("prefetchw %0" : : "m"(*line));
#else
    __builtin_prefetch(line, 1);
#endif
  }
  bool all_finished(uint64_t sequence);
  void take(Rank rank, std::unique_ptr<SharedMemory>);
  explicit Board(Rank rank, int ranks, size_t bounce_bytes)
      : rank_(rank), bounce_bytes_(bounce_bytes), parts_(static_cast<size_t>(ranks)) {}
  std::byte* base(Rank rank) const { return parts_[static_cast<size_t>(rank)].base; }
  Head& head(Rank rank) const { return *reinterpret_cast<Head*>(base(rank)); }
  std::atomic<uint64_t>& done(Rank rank) const { return head(rank).done; }
  Line& at(Rank rank, uint64_t sequence) const { return *reinterpret_cast<Line*>(base(rank) + sizeof(Line) + (sequence % lines) * stride); }

  Rank rank_;
  size_t bounce_bytes_;
  std::vector<Part> parts_;   // by rank
  uint64_t done_by_all_ = 0;  // as far as known
  std::vector<Attached> attached_;
  const Doorbell* bell_ = nullptr;
};

}  // namespace gyre::transport
