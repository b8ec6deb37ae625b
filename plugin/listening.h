// The receiver's side of connections that are being made: a listening socket, and the peers that have come to it, until each has become a
// connection. Who does not show the handle's cookie is a stranger: dropped, counted, and never waited for.
#pragma once
#include <deque>

#include "plugin/comm.h"

namespace gyre::plugin {

using transport::ListeningSocket;

class ListenComm {
 public:
  static Result<std::shared_ptr<ListenComm>> open(std::shared_ptr<Group>, std::chrono::seconds silence, Handle);
  ListenComm(std::shared_ptr<Group>, std::chrono::seconds silence, ListeningSocket, const Cookie&);
  ~ListenComm();
  ListenComm(const ListenComm&) = delete;
  ListenComm& operator=(const ListenComm&) = delete;

  /// A connection that is complete; null: none yet. With the group's turn.
  Result<std::unique_ptr<Comm>> accept();
  const std::shared_ptr<Group>& group() { return group_; }
  uint64_t strangers() const { return strangers_; }

 private:
  struct Arrival {
    Control control;
    std::chrono::steady_clock::time_point since;
    uint64_t number = 0;  // 0: has not greeted
    Identity from{};
    WayKind way = WayKind::network;
    bool asked = false;   // for an address of that way
    bool joined = false;  // the peer's end of the endpoint is ready
    std::unique_ptr<transport::Endpoint> endpoint{};
  };

  Status take_arrivals();
  Status hear(Arrival&);
  Status take_hello(Arrival&, std::string_view);
  void take_attempt(Arrival&, std::string_view);
  void take_endpoints();
  void refuse(Arrival&, const std::string& why);
  void refuse_all(WayKind, const std::string& why);
  void drop(const Arrival&, const std::string& why);

  std::shared_ptr<Group> group_;  // shared: a listener keeps its group
  const std::chrono::seconds silence_;
  ListeningSocket socket_;
  const Cookie cookie_;
  std::array<std::unique_ptr<transport::Listener>, way_kinds> listeners_;
  std::deque<Arrival> arrivals_;
  uint64_t strangers_ = 0;
};

}  // namespace gyre::plugin
