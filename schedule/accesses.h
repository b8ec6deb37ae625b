// Who touched a cell of memory last, and whether that is over for somebody who touches it now (order.h has the rules). Of one channel,
// whose programs are numbered strand * ranks + rank. Private to order.cpp.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "schedule/clocks.h"
#include "schedule/schedule.h"

namespace gyre::schedule {

class Accesses {
 public:
  /// An access that may not be over.
  struct Conflict {
    enum class Kind : uint8_t { read, write, sent } kind;
    uint32_t program;
    uint32_t step;
  };

  Accesses(const Schedule& schedule, size_t cells, size_t messages)
      : ranks_(static_cast<uint32_t>(schedule.ranks)),
        strands_(schedule.strands),
        cells_(cells),
        last_(cells * ranks_ * strands_),
        sent_(cells * ranks_),
        taken_(messages) {}

  /// Step `step` of `program` reads or writes a cell of its rank, and knows `clock` when it begins.
  std::optional<Conflict> read(uint32_t program, uint32_t step, size_t cell, const Clock& clock) {
    std::optional<Conflict> conflict = others(program, cell, clock, false);
    last(program, cell).read = step + 1;
    return conflict;
  }
  std::optional<Conflict> write(uint32_t program, uint32_t step, size_t cell, const Clock& clock) {
    std::optional<Conflict> conflict = others(program, cell, clock, true);
    // What this strand sent from here is complete: it waits for that. And whoever comes later must be ordered after this write.
    std::vector<Message>& sent = sent_[(program % ranks_) * cells_ + cell];
    for (const Message& message : sent) {
      const uint32_t taken = taken_[message.number];
      if (message.sender == program || conflict) continue;
      if (taken == 0 || taken > clock[message.receiver]) conflict = Conflict{Conflict::Kind::sent, message.sender, message.step};
    }
    sent.clear();
    last(program, cell).write = step + 1;
    return conflict;
  }

  /// A message that the transport reads from a cell.
  struct Message {
    uint32_t number;
    uint32_t sender;
    uint32_t step;
    uint32_t receiver;
  };
  void send(size_t cell, const Message& message) { sent_[(message.sender % ranks_) * cells_ + cell].push_back(message); }
  /// The receiver's step takes it.
  void take(uint32_t message, uint32_t step) { taken_[message] = step + 1; }

 private:
  // Times of a strand's last accesses, in its own steps; 0: never. Who is ordered after the last is ordered after all.
  struct Last {
    uint32_t read = 0;
    uint32_t write = 0;
  };
  Last& last(uint32_t program, size_t cell) { return last_[program * cells_ + cell]; }
  std::optional<Conflict> others(uint32_t program, size_t cell, const Clock& clock, bool writes) {
    for (uint32_t other = program % ranks_; other < ranks_ * strands_; other += ranks_) {
      if (other == program) continue;
      const Last& was = last(other, cell);
      if (was.write > clock[other]) return Conflict{Conflict::Kind::write, other, was.write - 1};
      if (writes && was.read > clock[other]) return Conflict{Conflict::Kind::read, other, was.read - 1};
    }
    return {};
  }

  uint32_t ranks_;
  uint32_t strands_;
  size_t cells_;
  std::vector<Last> last_;                  // [program, cell]
  std::vector<std::vector<Message>> sent_;  // [rank, cell]: since it was written
  std::vector<uint32_t> taken_;             // [message]: when, in the receiver's steps; 0: not yet
};

}  // namespace gyre::schedule
