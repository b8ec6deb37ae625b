// The data path of one connection, in both directions, over one or more paths (wire.h draws what they carry). Zero copy: a message is written
// from the sender's registered memory into the receiver's, and a send has no request before the receive it belongs to is known. After
// join() nothing is allocated, no lock is taken and no system call made. Used by the worker's thread.
#pragma once
#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/pool.h"
#include "transport/transport.h"
#include "transport/verbs/path.h"
#include "transport/verbs/wire.h"

namespace gyre::transport::verbs {

/// Memory registered on each rail of a worker.
class Registered final : public Memory {
 public:
  static Result<std::unique_ptr<Registered>> add(std::span<Rail* const> rails, std::span<std::byte>);
  uint32_t local_key(size_t rail) const { return regions_[rail]->lkey; }
  uint32_t remote_key(size_t rail) const { return regions_[rail]->rkey; }

 private:
  std::array<MemoryRegion, max_rails> regions_;
};

class Link {
 public:
  /// A path on each rail, and so often again.
  static Result<std::unique_ptr<Link>> open(std::span<Rail* const> rails, uint32_t paths_per_rail, std::string peer);
  explicit Link(std::string peer) : peer_(std::move(peer)) {}
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;
  ~Link();

  /// Bytes that the peer passes to join().
  std::string card() const;
  Status join(std::string_view peers_card);

  /// Null: the peer has posted no receive of this tag, or there is no room. `memory` may be null for what goes inline.
  Request* send(uint64_t tag, std::span<const std::byte> data, const Registered* memory);
  Request* receive(uint64_t tag, std::span<std::byte> place, const Registered* memory);
  void release(Request*);

  /// Of one of its paths.
  void complete(Path&, const ibv_wc&);
  /// This path has failed; the others take over, if there are any.
  void lose(Path&, const Error& why);
  /// What waits for room on a path. True: there is nothing.
  bool catch_up();
  /// Everything under way ends now with this reason (static text), and the devices touch no memory of it any more.
  void break_off(const char* reason);
  /// Called from within any call when a path or all has failed: catch_up() and failure() have something to say.
  void on_failure(std::function<void()> call) { on_failure_ = std::move(call); }
  const std::optional<Error>& failure() const { return failure_; }
  bool sending() const { return !sending_.empty(); }
  size_t alive() const;

 private:
  struct Piece {
    const std::byte* data = nullptr;
    uint32_t bytes = 0;
    uint8_t path = 0;
  };
  struct Sending : Request {
    const Registered* memory = nullptr;
    uint64_t sequence = 0;         // of the peer's receive
    uint16_t under_way = 0, unsent = 0;  // pieces, as bits
    uint8_t last = 0;
    bool too_long = false;
    std::array<Piece, max_pieces> pieces;
  };
  struct Receiving : Request {};
  struct Posted {  // a receive, at its entry
    Receiving* request = nullptr;
    uint64_t bytes = 0;
    uint16_t pieces = 0;
  };
  struct Rings {  // what the devices read and write, in one registration
    CreditRing offered;  // by the peer: written by its device
    CreditRing own;      // of our receives: from where ours are sent
    std::array<Mail, max_paths> mails, own_mails;  // by the path that brings them
  };

  void look_for_credits();
  std::optional<uint8_t> take_match(uint64_t tag);
  uint8_t split(std::span<const std::byte> data);
  bool write_piece(Sending&, uint8_t piece);
  bool write_credit(uint8_t entry);
  void acknowledged(Sending&, uint8_t piece);
  Request* refuse();
  void arrived(uint32_t bytes, Immediate);
  void fail(Error);
  void end_all();
  Path* some_path();

  // After failures of paths: link_recovery.cpp.
  void recover();
  bool write_mail();
  void take_mail(uint8_t path);
  void take_up();

  const std::string peer_;
  std::vector<Rail*> rails_;
  std::vector<std::unique_ptr<Path>> paths_;
  Pool<Sending> sends_{ring_entries};
  Pool<Receiving> receives_{2 * ring_entries};
  std::vector<Sending*> sending_;

  std::unique_ptr<Rings> rings_ = std::make_unique<Rings>();
  std::unique_ptr<Registered> rings_memory_;
  uint64_t peers_rings_ = 0;
  std::array<uint32_t, max_rails> peers_keys_{};

  std::array<Posted, ring_entries> posted_{};
  uint64_t posted_count_ = 0, oldest_ = 0;  // receives: asked for, and how many of them are done in a row
  std::vector<uint8_t> unmatched_;          // entries of offered receives, in their order
  uint64_t offered_ = 0;
  std::array<Piece, max_pieces> pieces_{};
  size_t next_path_ = 0;

  Mail peer_said_;                           // last
  bool heard_ = false;                       // and it was not acted upon
  std::array<uint8_t, max_paths> failed_{};  // by path: its last generation that has
  bool unsaid_ = false;                  // the peer is still to be told of failures
  bool unsent_ = false;                  // pieces or credits are
  std::vector<uint8_t> credits_unsent_;
  std::optional<Error> failure_;
  std::function<void()> on_failure_;
};

/// Hands what is complete on this rail to its connections; how much that was.
unsigned poll(const Rail&);

}  // namespace gyre::transport::verbs
