// The Machine (schedule/run.h) that moves bytes in host memory: one rank's program on one strand of a channel. What arrived is reduced
// where it lies, in the slot or in the user's buffer; what goes out is written into the slot or, on a direct Fifo, sent from the user's
// buffer. The strands of a channel share its Fifos: in each direction one of them uses a Fifo, and what orders their accesses to memory is
// the messages between ranks, as the proof has shown, so that a strand need know nothing of the others.
// Used by one thread; a run allocates nothing. It must not know how to wait: that is the executor's.
#pragma once
#include <vector>

#include "engine/away.h"
#include "engine/combine.h"
#include "engine/posting.h"
#include "transport/shared_heap.h"

namespace gyre::engine {

class HostMachine {
 public:
  /// `fifos`: of the channel, by peer rank, null for this rank itself, and who is not joined with it.
  HostMachine(Rank rank, uint32_t channel, uint32_t strand, std::vector<transport::Fifo*> fifos, Away away);

  /// Prepares a run. `word` travels with every message and must arrive with every message. `scratch`: Plan::scratch_bytes().
  void bind(const Plan& plan, uint64_t word, const Buffers& buffers, std::byte* scratch);
  /// Runs steps until one can't, at most `limit`; true if any ran.
  bool run(size_t limit = SIZE_MAX);
  /// All steps have run and no message is read from this rank's memory any more. Never, where a peer has taken back what it had lent.
  bool done() { return !taken_back_ && position_.round == plan_->rounds() && (!posting_.needed() || posting_.idle()); }

  /// What it waits for, where it waits, and the step; null when all steps have run.
  schedule::Blocked blocked() const { return blocked_; }
  const schedule::Position& position() const { return position_; }
  const schedule::Program& program() const { return *program_; }
  const schedule::Step* step() const { return position_.round < plan_->rounds() ? &program_->steps[position_.cursor.step] : nullptr; }
  /// Its messages are read from memory, by peers of whom it may wait for any.
  bool lends() const { return lent_[0] || lent_[1]; }
  /// Whom it waits for; of its last sends, all to whom they go.
  std::vector<Rank> awaited() const;
  /// Who sent a message of another call; -1: nobody.
  Rank mismatched() const { return mismatched_; }

  // For advance().
  bool arrived(Rank peer);
  bool credit(Rank peer) { return fifo(peer).reserve(sent_bytes_) != nullptr; }
  bool overwritable(const schedule::Chunks& dst) {
    reader_ = posting_.needed() ? posting_.reader(dst, position_) : -1;
    return reader_ < 0;
  }
  void take(Rank peer);
  void take(const schedule::Chunks& chunks) { sources_.push_back({chunks, nullptr}); }
  void put(const schedule::Chunks&) {}
  void put(Rank) {}
  void finish(const schedule::Step&);

 private:
  struct Operand {
    schedule::Chunks chunks;   // of a local source
    const std::byte* arrived;  // null: local
  };

  transport::Fifo& fifo(Rank peer) const { return *fifos_[static_cast<size_t>(peer)]; }
  Piece piece(const schedule::Chunks& chunks, uint32_t i) const {
    return plan_->piece(chunks[i], position_.round * plan_->slices() + position_.cursor.slice);
  }
  std::byte* address(const schedule::Chunks& chunks, Piece piece) const {
    return buffers_[static_cast<size_t>(chunks.buffer)] + piece.first * plan_->width(chunks.buffer);
  }
  void begin(const schedule::Step&);
  void look_for_loans(const Extent&, const Buffers&);
  bool from_memory(const schedule::Step&, const transport::Fifo&) const;
  bool result_away(const schedule::Step&, const std::byte* result) const;
  void compute(const schedule::Step&);
  bool still_there(const schedule::Step&) const;
  void send(const schedule::Step&);

  Rank rank_;
  uint32_t channel_;
  uint32_t strand_;
  std::vector<transport::Fifo*> fifos_;
  Away away_;
  Posting posting_;
  Combine combine_;

  const Plan* plan_ = nullptr;
  const schedule::Program* program_ = nullptr;
  const schedule::Fact* facts_ = nullptr;
  uint64_t word_ = 0;
  bool messages_away_ = false;
  bool results_away_ = false;
  std::byte* buffers_[3] = {};  // input (never written), output, scratch
  bool lent_[3] = {};           // of these (never scratch), what peers can read where it lies
  transport::HeapCache heap_;

  schedule::Position position_;
  schedule::Blocked blocked_;
  Rank mismatched_ = -1;
  bool taken_back_ = false;
  bool borrows_ = false;  // the step that is being tried

  // of the step that is being tried
  Rank reader_ = -1;           // of what it overwrites
  size_t arriving_bytes_ = 0;  // of a message
  size_t sent_bytes_ = 0;
  std::vector<Operand> sources_;
  std::vector<Source> pieces_;
  std::vector<Sink> sinks_;
};

}  // namespace gyre::engine
