// The data path of one connection, in both directions, over one or more paths (wire.h draws what they carry). Zero copy: a message is
// written from the sender's registered memory into the receiver's, and a send has no request before the receive it belongs to is known.
// While no path fails, nothing is allocated after join(), no lock is taken and no system call made. Used by the worker's thread.
//
//   link.cpp            opened, joined, ended         link_send.cpp, link_receive.cpp     messages
//   link_recovery.cpp   paths fail                    link_rejoin.cpp   and come back     link_detour.cpp   none is left
#pragma once
#include <array>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/chain.h"
#include "base/pool.h"
#include "transport/transport.h"
#include "transport/verbs/detour.h"
#include "transport/verbs/path.h"
#include "transport/verbs/registered.h"
#include "transport/verbs/wire.h"

namespace gyre::transport::verbs {

/// Of the paths between two ends, which may have different numbers of ports: path i is on port i of each, modulo their number.
struct Shape {
  uint32_t peers_rails = 1;
  uint32_t pairs = 1;     ///< queue pairs on each port of the end that has more
  bool confirms = false;  ///< a send is done when the receiver has said so, not only its device
  uint32_t first = 0;     ///< of this end's ports, the one on which short messages begin
};

class Link final : private Detour::Receiver {
 public:
  using Clock = std::chrono::steady_clock;

  static Result<std::unique_ptr<Link>> open(std::span<Rail* const> rails, Shape, std::string peer);
  Link(std::string peer, Shape shape) : peer_(std::move(peer)), shape_(shape) {}
  ~Link() override;

  /// Bytes that the peer passes to join().
  std::string card() const;
  Status join(std::string_view peers_card);
  /// When the peer has joined too: asks each path whether it carries. Of one that does not, lose() is told.
  void try_paths();
  bool trying() const;
  /// Of the first paths each carries or has failed, and some way is there. Those that failed are tried again later.
  bool ready() const;
  /// That the peer is still to be told of.
  bool has_news() const { return unsaid_; }

  /// Null: the peer has posted no receive of this tag, or there is no room. `memory` may be null for what goes inline.
  Request* send(uint64_t tag, std::span<const std::byte> data, const Registered* memory);
  /// `group`: one of several in a row that are waited for together, for all of which there was room. Null: there is none.
  Request* receive(uint64_t tag, std::span<std::byte> place, const Registered* memory, Credit::Group group = {});
  bool has_room(size_t receives) const {
    return posted_count_ - oldest_ + receives <= ring_entries && receives_.in_use() + receives <= 2 * ring_entries;
  }
  void release(Request* request) {
    if (request->handle)
      sends_.give(static_cast<Sending*>(request));
    else
      receives_.give(static_cast<Receiving*>(request));
  }
  /// Receives that can be asked for now.
  size_t receive_room() const { return failure_ ? ring_entries : ring_entries - (posted_count_ - oldest_); }

  /// Goes on there when no path is left, if the peer does the same. Before join().
  void use_detour(std::unique_ptr<Endpoint>, bool takes_cuda);
  Detour* detour() { return detour_.get(); }
  /// Now and then.
  void progress_detour();

  /// Of one of its paths.
  void complete(Path&, const ibv_wc&);
  /// This path has failed; the others take over, if there are any.
  void lose(Path&, const Error& why);
  /// All its paths on this rail, or that of this queue pair number.
  void lose(const Rail&, std::optional<uint32_t> pair, const Error& why);
  /// This rail's device returns nothing any more.
  void lose_device(const Rail&, const Error& why);
  /// Whether paths of other rails are alive.
  bool has_others(const Rail&) const;
  /// What waits for room on a path, or for the peer. True: there is nothing.
  bool catch_up();
  /// Now and then: tries again what has failed, and whether what is silent is there (`watch`).
  void tick(Clock::time_point now, bool watch);
  /// A port is up again: no need to wait.
  void retry_at_once();
  /// Everything under way ends now with this reason (static text), and the devices touch no memory of it any more.
  void break_off(const char* reason);
  /// Called from within any call when a path or all has failed, or something waits for room: catch_up() and failure() have something to
  /// say.
  void on_failure(std::function<void()> call) { on_failure_ = std::move(call); }
  /// Called when the last path has failed: there may be a farewell to take.
  void on_end(std::function<void()> call) { on_end_ = std::move(call); }
  /// What this end has received, for the peer's take_farewell().
  std::string report();
  /// The peer sends and receives nothing more: what it has, by its last report, is done. The connection is to be broken off then.
  void take_farewell(std::string_view report);
  const std::optional<Error>& failure() const { return failure_; }
  bool sending() const;
  size_t alive() const { return carrying_.size(); }
  bool alive(size_t path) const { return paths_[path]->alive(); }
  size_t paths() const { return paths_.size(); }
  /// To the peer, by the paths themselves: the last word of this end. False: not yet.
  bool say_goodbye();
  bool peer_said_goodbye() const { return peer_said_.goodbye != 0 && (!has_detour() || detour_->taken_all()); }

 private:
  static constexpr uint8_t detour_path = max_paths;  // in place of a path's number
  struct Piece {
    const std::byte* data = nullptr;
    uint32_t bytes = 0;
    uint8_t path = 0;
  };
  using Pieces = std::array<Piece, max_pieces>;
  struct SendingState : Request, ChainLink {
    const Registered* memory = nullptr;
    uint64_t sequence = 0;               // of the peer's receive
    uint16_t under_way = 0, unsent = 0;  // pieces, as bits
    uint8_t last = 0;
    bool too_long = false, whole = false, quiet = false, confirmed = false;
    uint8_t with = 0;
  };
  struct Sending : SendingState {
    Pieces pieces;
  };
  struct Receiving : Request {};
  struct Posted {  // a receive, at its entry
    Receiving* request = nullptr;
    const Registered* memory = nullptr;
    uint64_t bytes = 0;
    uint16_t pieces = 0;
    uint8_t credit_path = 0;
  };
  /// What is known of a message that was sent, at its entry, until the entry is used again.
  struct Sent {
    bool quiet = false;    // no immediate of its own went with it
    bool by_word = false;  // but one that recovery sent, by the path of the first piece
    uint8_t last = 0;
    std::array<uint8_t, max_pieces> paths{};  // by piece
    void tell(const SendingState& of) { quiet = of.quiet, by_word = false, last = of.last; }
  };
  /// Of the peer's receives that are waited for together, at the entry of the first.
  struct Group {
    uint8_t left = 0;   // that wait for a send
    uint8_t quiet = 0;  // by place: that no immediate has told of
    uint8_t path = 0;   // which brought these
  };
  struct Rings {                                   // what the devices read and write, in one registration
    CreditRing offered;                            // by the peer: written by its device
    CreditRing own;                                // of our receives: from where ours are sent
    std::array<Mail, max_paths> mails, own_mails;  // by the path that brings them
  };
  struct Retry {
    Clock::time_point at{};
    std::chrono::milliseconds wait{};
    Clock::time_point failed_at{};
  };

  // link_send.cpp
  void look_for_credits();
  const Credit* match(uint64_t tag);
  static constexpr uint8_t too_many = max_pieces + 1;
  uint8_t split(std::span<const std::byte> data, Pieces&);
  uint8_t stripe(std::span<const std::byte> data, Pieces&);
  uint8_t split_detour(std::span<const std::byte> data, Pieces&);
  bool group_waits(const Group& group) const { return group.quiet != 0 && lives(group.path) && !paths_[group.path]->has_room(); }
  Path* lightest(size_t bytes);
  void join_group(Sending&, const Credit&);
  Group& group_of(uint8_t entry) { return groups_[static_cast<uint8_t>(entry - rings_->offered[entry].group().place)]; }
  bool write(Path&, const Path::Write&, Immediate, Path::Ended);
  void begin(Sending&, uint64_t sequence, size_t bytes, const Registered*, uint8_t last);
  Request* send_otherwise(uint64_t tag, std::span<const std::byte> data, const Registered*);
  void leave_for_later(Sending&, uint8_t piece);
  bool write_piece(Sending&, uint8_t piece);
  bool write_word(Path&, Immediate);
  void sent(Path&);
  void acknowledged(Sending& sending, uint8_t piece) const {
    sending.under_way &= static_cast<uint16_t>(~(1U << piece));
    if (sending.under_way == 0 && (!shape_.confirms || sending.confirmed)) finish(sending);
  }
  void confirmed(Immediate);
  bool has(uint64_t sequence);
  /// Of the receive that was offered there last.
  uint64_t sequence_at(uint8_t entry) const { return offered_ - static_cast<uint8_t>(offered_ - 1 - entry); }
  static void finish(Sending& sending) {
    sending.done = true;
    Chain<Sending>::erase(sending);
  }
  // link_receive.cpp
  bool write_credit(uint8_t entry);
  void arrived(uint32_t bytes, Immediate);
  void received(uint8_t entry, uint64_t bytes, bool too_long);
  // link.cpp
  void take(Path&, const ibv_wc&);
  Request* refuse();
  Request* refuse_length();
  void fail(Error);
  void end_all();
  /// Whether what was given to this path, or to the detour, is not lost.
  bool lives(uint8_t path) const { return path == detour_path ? has_detour() : paths_[path]->alive(); }
  bool has_detour() const { return detour_ && failed_[detour_path] == 0; }
  Path* some_path() { return carrying_.empty() ? nullptr : carrying_.front(); }
  void count_paths();
  bool posted(Path& path, int error, const char* call) {
    if (error != 0) [[unlikely]]
      post_failed(path, error, call);
    return error == 0;
  }
  void post_failed(Path&, int error, const char* call);
  Path::Place place_of(size_t path) const;
  // link_recovery.cpp
  void recover();
  void report(Mail&);
  bool write_mail();
  void take_up();
  void take_up(Sending&);
  uint16_t peer_has(uint64_t sequence) const;
  void account_for(uint64_t sequence);
  void leave_group(uint8_t entry);
  void tell_by_word(uint64_t sequence);
  bool write_words();
  // link_detour.cpp
  bool detours(const Registered*);
  void lose_detour(const std::string& why);
  void watch_detour(Clock::time_point now);
  bool send_by_detour(Sending&, uint8_t piece);
  void take_credit(const Credit&) override;
  void take_mail(const Mail&) override;
  void take_word(Immediate, uint32_t bytes) override;
  std::byte* place_of(Immediate, uint64_t offset, uint64_t bytes) override;
  void taken(Request* owner, uint8_t piece) override;
  // link_rejoin.cpp
  bool tried_too_long(Clock::time_point now);
  void rejoin(bool on_time);
  void wait_for(uint8_t path);
  void probe(Path&);
  void probe_done(Path&);

  const std::string peer_;
  const Shape shape_;
  std::vector<Rail*> rails_;
  std::vector<std::unique_ptr<Path>> paths_;
  std::vector<Path*> carrying_;  // that are alive
  Path* only_ = nullptr;         // of these, where it is one
  uint64_t mbit_per_s_ = 0;      // of these
  std::array<uint64_t, max_paths> load_{};
  Pool<Sending> sends_{ring_entries};
  Pool<Receiving> receives_{2 * ring_entries};
  Chain<Sending> sending_;

  std::unique_ptr<Rings> rings_ = std::make_unique<Rings>();
  std::unique_ptr<Registered> rings_memory_;
  uint64_t peers_rings_ = 0;
  std::array<uint32_t, max_rails> peers_keys_{};

  std::array<Posted, ring_entries> posted_{};
  uint64_t posted_count_ = 0, oldest_ = 0;  // receives: asked for, and how many of them are done in a row
  std::vector<uint8_t> unmatched_;          // entries of offered receives, in their order
  uint64_t offered_ = 0;
  std::array<Sent, ring_entries> sent_{};
  std::array<Group, ring_entries> groups_{};

  Mail peer_said_;                                // last
  bool heard_ = false;                            // and it was not acted upon
  std::array<uint32_t, max_paths + 1> failed_{};  // by path, and of the detour: its last generation that has
  std::array<uint32_t, max_paths + 1> taken_{};   // and when last all was taken up
  std::array<uint32_t, max_paths> gone_{};        // with its device
  std::array<Retry, max_paths> retry_{};
  Clock::time_point probed_{};
  Clock::time_point none_since_{};  // since when no way is left, as far as tick() has seen; zero: one is
  uint64_t mails_ = 0;
  bool unsaid_ = false;  // the peer is still to be told of news
  bool unsent_ = false;  // pieces, credits or words are
  bool goodbye_ = false;
  std::vector<uint8_t> credits_unsent_;
  std::vector<Immediate> words_unsent_;  // immediates without data
  std::unique_ptr<Detour> detour_;
  bool detour_takes_cuda_ = false;
  uint64_t detour_steps_ = 0;  // when it was last looked at
  Clock::time_point detour_watched_{};
  Clock::duration detour_pause_{};
  std::optional<Error> failure_;
  std::function<void()> on_failure_, on_end_;
};

/// Hands what is complete on these rails to their connections; how much that was.
unsigned poll(std::span<Rail* const>);

}  // namespace gyre::transport::verbs
