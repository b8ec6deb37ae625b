// A group of sends and receives. Each rank sees only its own part, so nothing can be proven beforehand as a schedule is; instead every
// message is checked. Per peer and direction there is a strand, whose messages are matched with the peer's by order; strands do not wait
// for each other.
//
//   a message: | header: number in the pair and direction, count, type | elements, in pieces of at most a slot |
//
// No order of transfers in the lists of the ranks can deadlock. Take the earliest message of a pair and direction that is not complete,
// and both ranks in the groups that hold it. Its receiver takes every piece as it arrives, whatever happens to other strands; so a slot of
// this direction becomes free, or the direct piece is announced, and the sender, which too waits for nothing else, can go on.
// Used by one thread; a run of no more transfers than before allocates nothing. It must not know how to wait.
#pragma once
#include <span>
#include <vector>

#include "engine/away.h"
#include "engine/work.h"
#include "transport/transport.h"

namespace gyre::engine {

struct Transfer {
  enum class Kind : uint8_t { send, receive };
  Kind kind = Kind::send;
  Rank peer = 0;
  void* data = nullptr;  ///< of a send: only read
  size_t count = 0;
  DataType type = DataType::float32;
};

class Batch final : public Work {
 public:
  /// `fifos`: by peer, null for this rank itself, and who is not joined with it. `slot_bytes`: their largest message.
  Batch(Rank rank, std::vector<transport::Fifo*> fifos, size_t slot_bytes, Away away);

  /// What is wrong with a group by itself; nothing: it can be run.
  std::optional<Error> refuse(std::span<const Transfer>) const;
  /// Prepares a group; what goes from this rank to itself is done at once. `next_call`: the number of the next call of all ranks.
  void bind(std::span<const Transfer>, uint64_t next_call, TimeLimit = std::nullopt);

  Moved move() override;
  Rank stranger() const override { return stranger_; }
  std::optional<Error> wrong() const override { return wrong_; }
  TimeLimit limit() const override { return limit_; }
  std::vector<Rank> awaited() const override;
  std::string where() const override;
  Description description() const override;
  /// Of all groups so far; nothing is awaited where none is under way.
  std::vector<transport::Pair> pairs() const override;

 private:
  struct Message {
    std::byte* data;
    size_t bytes;
    size_t count;
    DataType type;
  };
  /// How far a strand has come: the message, and of that whether the header is through, and how many bytes.
  struct Place {
    uint32_t message = 0;
    bool header_through = false;
    size_t offset = 0;
  };
  struct Strand {
    Rank peer = 0;
    bool sends = false;
    uint32_t first = 0;   ///< of messages_
    uint32_t end = 0;     ///< of messages_
    uint64_t number = 0;  ///< of the first message in this pair and direction
    Place at;
    Place announced;  ///< of receives on a posted Fifo
  };
  struct Header {
    uint64_t number = 0;
    uint64_t count = 0;
    uint64_t type = 0;
  };
  struct Count {
    uint64_t sends = 0;
    uint64_t receives = 0;
  };

  transport::Fifo& fifo(const Strand& strand) const { return *fifos_[static_cast<size_t>(strand.peer)]; }
  uint64_t number(const Strand& strand, const Place& place) const { return strand.number + place.message - strand.first; }
  uint64_t word(const Strand&, const Place&) const;
  size_t piece_bytes(const Place&) const;
  void pass(Place&) const;

  void copy_own(std::span<const Transfer>) const;
  bool finished(const Strand&) const;
  bool move(Strand&);
  bool send(Strand&);
  bool receive(Strand&);
  void announce(Strand&);
  bool accept(const Strand&, const transport::Arrival&);

  Rank rank_;
  std::vector<transport::Fifo*> fifos_;
  size_t slot_bytes_;
  Away away_;
  std::vector<Count> begun_;       // by peer
  std::vector<Message> messages_;  // by strand
  std::vector<Strand> strands_;
  std::vector<uint32_t> active_;  // strands that are not finished
  std::vector<uint32_t> places_;  // of bind()
  uint64_t next_call_ = 0;
  Rank stranger_ = -1;
  std::optional<Error> wrong_;
  TimeLimit limit_;
};

}  // namespace gyre::engine
