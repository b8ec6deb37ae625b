// A connection in one direction: NCCL's sendComm or recvComm. Its messages go through a transport Endpoint; its Control socket tells that
// the peer is gone. It is lost at its first error, and then every call says so.
//
// How far a sender runs ahead is bounded: small messages leave before the receiver has asked for them, so of every tag each max_requests-th
// is synchronous, and the next such one does not leave while the last has not been received; where long ones too are copied and leave, so
// is the first beyond 16 MiB. By tag, since NCCL lets senders share a
// connection, of which one may wait for a receive that is only asked for when another's are through. Where the endpoint sends nothing
// before it is asked for (verbs), sends wait here for that.
#pragma once
#include <optional>
#include <vector>

#include "plugin/counters.h"
#include "plugin/group.h"
#include "plugin/request.h"
#include "transport/control.h"

namespace gyre::plugin {

using transport::Control;
using transport::Frame;

class Comm {
 public:
  enum class Direction : uint8_t { sends, receives };

  Comm(std::shared_ptr<Group>, WayKind, Direction, std::unique_ptr<transport::Endpoint>, Control, const std::string& peer);
  Comm(const Comm&) = delete;
  Comm& operator=(const Comm&) = delete;
  /// With the group's turn.
  ~Comm();

  Result<Request*> send(const void* data, size_t bytes, int tag, const Memory*);
  Result<Request*> receive(const Receives&);
  Result<Request*> flush(std::span<void* const> data, std::span<const int> bytes, void* const* memory);
  Result<bool> test(Request&, int* sizes);
  Result<Memory*> register_memory(void* data, size_t bytes, MemoryKind, const transport::DmaBuf* = nullptr);
  Status deregister(Memory*);
  /// Waits for nobody.
  static void close(std::unique_ptr<Comm>);

  Group& group() { return *group_; }
  Direction direction() const { return direction_; }
  WayKind way() const { return way_; }
  const std::string& peer() const { return peer_; }
  const Counters& counters() const { return counters_; }
  int watched_fd() const { return control_.fd(); }
  /// Something has come from the peer's socket, or its end.
  void look();
  /// Now and then, while something of the group is waited for.
  void look_after(std::chrono::steady_clock::time_point now);
  /// Gives the endpoint what it had no request for. False: some is left.
  bool hand_over();

 private:
  /// The messages of one tag.
  struct Lane {
    int tag = 0;
    size_t since_synchronous = 0, bytes_since = 0;
    transport::Request* synchronous = nullptr;  // the last one, while it is under way
  };

  Lane& lane(int tag);
  static void note_ahead(Lane&, size_t bytes, transport::Request* synchronous);
  Request* take();
  Request* no_room();
  bool waits(int tag) const;
  void wait(Request&);
  void give(Request&);
  void give_flushes(Request&);
  void forget_synchronous(const transport::Request* part);
  transport::Request* post(const Request&, bool synchronous);
  bool look_for(const Request&);
  Result<bool> finish(Request&, int* sizes);
  Error fail(Error);
  Error failure_of(const transport::Request& part);
  void lose(const std::string& why);
  void note_loss(const std::string& why);
  bool uses(const Memory*) const;

  std::shared_ptr<Group> group_;  // shared: the last connection of a group ends it
  const WayKind way_;
  const Direction direction_;
  std::unique_ptr<transport::Endpoint> endpoint_;
  const bool registered_only_;  // what is moved must be
  const bool runs_ahead_;       // sends leave before the peer has asked for them
  const bool times_;            // what is waited for is timed
  const int looks_;             // of a test, at what is not done; cheap through shared memory, a system call by the network
  Control control_;
  const std::string peer_;
  Counters counters_;
  std::optional<Error> failure_;
  bool peer_left_ = false;  // has said farewell
  std::optional<std::chrono::steady_clock::time_point> lost_at_;
  std::string lost_why_;

  std::vector<Request> requests_{max_requests};
  std::vector<Request*> free_;
  std::vector<Request*> waiting_;  // sends that the endpoint has no request for yet, in their order
  std::vector<int> blocked_;       // by hand_over(): tags of those
  std::vector<Lane> lanes_;        // of a sender; a few
  size_t last_lane_ = 0;
  std::vector<Memory*> registered_;  // as often as it is
};

}  // namespace gyre::plugin
