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
  void release(Request* request) { requests_.give(static_cast<Moving*>(request)); }

  /// Of one of its paths.
  void complete(Path&, const ibv_wc&);
  /// Everything under way ends now with this reason (static text), and the devices touch no memory of it any more.
  void break_off(const char* reason);
  /// Called once, from within any call.
  void on_failure(std::function<void()> call) { on_failure_ = std::move(call); }
  const std::optional<Error>& failure() const { return failure_; }
  bool sending() const { return !sending_.empty(); }

 private:
  struct Moving : Request {
    uint32_t pieces = 0;  // of a send, that are under way
  };
  struct Posted {  // a receive, at its entry
    Moving* request = nullptr;
    uint64_t sequence = 0, bytes = 0, pieces = 0;
  };
  struct Rings {  // what the devices read and write, in one registration
    CreditRing offered;  // by the peer: written by its device
    CreditRing own;      // of our receives: from where ours are sent
  };
  struct Piece {
    Path* path = nullptr;
    uint64_t from = 0;
    uint32_t bytes = 0;
  };

  void look_for_credits();
  std::optional<uint8_t> take_match(uint64_t tag);
  uint8_t split(uint64_t bytes);
  Request* refuse();
  void arrived(uint32_t bytes, Immediate);
  void fail(Error);
  void end_all();

  const std::string peer_;
  std::vector<Rail*> rails_;
  std::vector<std::unique_ptr<Path>> paths_;
  uint8_t epoch_ = 0;
  Pool<Moving> requests_{2 * ring_entries + 2 * ring_entries};
  std::vector<Moving*> sending_;

  std::unique_ptr<Rings> rings_ = std::make_unique<Rings>();
  std::unique_ptr<Registered> rings_memory_;
  uint64_t peers_ring_ = 0;
  std::array<uint32_t, max_rails> peers_keys_{};

  std::array<Posted, ring_entries> receives_{};
  uint64_t posted_ = 0, oldest_ = 0;  // receives: asked for, and how many of them are done in a row
  std::vector<uint8_t> unmatched_;    // entries of offered receives, in their order
  uint64_t offered_ = 0;
  std::array<Piece, max_pieces> pieces_{};
  size_t next_path_ = 0;
  std::optional<Error> failure_;
  std::function<void()> on_failure_;
};

/// Hands what is complete on this rail to its connections; how much that was.
unsigned poll(const Rail&);

}  // namespace gyre::transport::verbs
