// Where a connection's messages go when no path is left: over another Endpoint, of UCX over TCP (GYRE_FALLBACK=tcp). What would be written
// into the peer's rings or told by an immediate goes as a note; notes are of one tag, and so in order. A piece is a note and a message of
// its own tag, which the peer receives where it belongs when it has read the note. Used by the worker's thread; allocates.
#pragma once
#include <deque>
#include <list>
#include <memory>
#include <span>
#include <vector>

#include "transport/transport.h"
#include "transport/verbs/wire.h"

namespace gyre::transport::verbs {

class Detour {
 public:
  /// What the connection does with what comes.
  class Receiver {
   public:
    Receiver() = default;
    Receiver(const Receiver&) = delete;
    Receiver& operator=(const Receiver&) = delete;
    virtual ~Receiver() = default;
    virtual void take_credit(const Credit&) = 0;
    virtual void take_mail(const Mail&) = 0;
    virtual void take_word(Immediate, uint32_t bytes) = 0;
    /// Where so much of the receive that is told of belongs, from `offset` on. Null: there is no such receive.
    virtual std::byte* place_of(Immediate, uint64_t offset, uint64_t bytes) = 0;
    virtual void taken(Request* owner, uint8_t piece) = 0;
  };

  Detour(std::unique_ptr<Endpoint>, Receiver&);
  Detour(const Detour&) = delete;
  Detour& operator=(const Detour&) = delete;
  ~Detour();  ///< the endpoint first: it may still receive into notes
  Result<bool> ready() { return endpoint_->ready(); }

  void send(const Credit&);
  void send(const Mail&);
  void send(Immediate, uint32_t bytes = 0);
  /// Receiver::taken() with these when the peer has begun to receive it: what TCP alone had would be lost with it.
  void send(Immediate, uint64_t offset, std::span<const std::byte> data, Request* owner, uint8_t piece);
  /// Moves on what is under way. Why nothing does any more (static text), or null.
  const char* progress();
  /// Nothing moves any more, and no memory but its own is touched.
  void stop();
  /// Which grow as things move.
  uint64_t steps() const { return steps_; }
  /// Nothing that was given is still to leave.
  bool idle() const { return waiting_.empty() && notes_.empty() && data_.empty(); }
  /// Nothing that was told of is still to come.
  bool taken_all() const { return arriving_.empty(); }
  Endpoint& endpoint() { return *endpoint_; }

 private:
  enum class Kind : uint32_t { credit, mail, word, piece };
  struct Header {
    Kind kind{};
    uint32_t immediate = 0;
    uint64_t offset = 0, bytes = 0, number = 0;
  };
  using Note = std::vector<std::byte>;
  struct Data {
    std::span<const std::byte> bytes;
    uint64_t number = 0;  // of the piece; of one that is empty, its note's
    Request* owner = nullptr;
    uint8_t piece = 0;
    Request* request = nullptr;
  };
  struct Arriving {
    Immediate told;
    std::span<std::byte> place;
    uint64_t number = 0;
    Request* request = nullptr;
  };
  void add(const Header&, std::span<const std::byte> body);
  const char* take(std::span<const std::byte> note);
  const char* receive_notes();
  const char* receive_data();
  void send_waiting();
  const char* sent();

  static constexpr size_t longest_note = sizeof(Header) + sizeof(Mail);
  static constexpr size_t notes_awaited = 8;
  std::unique_ptr<Endpoint> endpoint_;
  Receiver& receiver_;
  uint64_t sent_pieces_ = 0, notes_added_ = 0, notes_done_ = 0, steps_ = 0;
  std::deque<Note> waiting_;  // to be handed to the endpoint, in order
  std::list<std::pair<Note, Request*>> notes_;
  std::list<Data> data_;
  std::array<std::pair<Note, Request*>, notes_awaited> awaited_;
  size_t next_ = 0;
  std::list<Arriving> arriving_;
};

}  // namespace gyre::transport::verbs
