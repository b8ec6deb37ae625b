// What a run must heed whose messages are read from memory, or posted. Posted connections have receives announced ahead of their steps
// (schedule/announce.h), and a run is not over before what it sent is out. Where they are direct, messages go from and to user memory,
// and to ranks that lend, from the shared heap: memory that a message is read from is not overwritten before the message is complete.
// With all messages copied to slots, all of this is empty.
#pragma once
#include <span>
#include <vector>

#include "engine/plan.h"
#include "schedule/announce.h"
#include "transport/transport.h"

namespace gyre::engine {

class Posting {
 public:
  explicit Posting(std::span<transport::Fifo* const> fifos);

  /// Some connection is posted; lends.
  bool posts() const { return posts_; }
  bool can_lend() const { return can_lend_; }

  /// `lending`: messages will be read from memory also by ranks that are lent it.
  void bind(const Plan& plan, const schedule::Program& program, uint64_t word, std::span<std::byte* const> buffers, bool in_place,
            bool lending);
  /// False: nothing below needs to be called in this run.
  bool needed() const { return posts_ || lending_; }
  /// Announces what will arrive, as far ahead of `now` as memory and connections allow.
  void announce(const schedule::Position& now) {
    if (posts_) announcer_.run(*this, plan_->schedule(), now);
  }
  /// The last message to that rank is being read from these bytes.
  void hold(Rank peer, const std::byte* data, size_t bytes);
  /// To whom a message under way is read from these chunks; -1: none is.
  Rank reader(const schedule::Chunks&, const schedule::Position&);
  /// Every message has left this rank's memory.
  bool idle();
  /// To whom messages have not.
  std::vector<Rank> readers() const;

  // For the announcer.
  bool posted(Rank peer) const { return fifo(peer).posted(); }
  bool held(const schedule::Chunks& dst, const schedule::Position& at) { return reader(dst, at) >= 0; }
  bool expect(Rank peer, const schedule::Step&, const schedule::Position&);

 private:
  struct Hold {
    Rank peer;
    uint64_t number;
    uintptr_t begin;
    uintptr_t end;
  };
  void forget_completed();
  Rank reader(const std::byte* data, size_t bytes);
  transport::Fifo& fifo(Rank peer) const { return *fifos_[static_cast<size_t>(peer)]; }
  Piece piece(uint32_t chunk, const schedule::Position& at) const {
    return plan_->piece(chunk, at.round * plan_->slices() + at.cursor.slice);
  }
  std::byte* address(schedule::Buffer buffer, Piece piece) const {
    return buffers_[static_cast<size_t>(buffer)] + piece.first * plan_->width(buffer);
  }

  std::vector<transport::Fifo*> fifos_;
  bool posts_ = false;
  bool can_lend_ = false;
  bool lending_ = false;
  std::vector<Hold> holds_;
  schedule::Announcer announcer_;
  const Plan* plan_ = nullptr;
  const schedule::Fact* facts_ = nullptr;  // [step]
  uint64_t word_ = 0;
  std::span<std::byte* const> buffers_;  // by schedule::Buffer
};

}  // namespace gyre::engine
