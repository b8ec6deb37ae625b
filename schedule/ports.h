// The ports of a Network while messages go through them: each direction serves one message at a time, and its connections in turn. A
// message takes both of its ends at once; one whose far end is busy does not hold up those of other connections, for which a NIC sends
// meanwhile. Private to simulator.cpp.
#pragma once
#include <algorithm>
#include <optional>
#include <vector>

#include "schedule/simulate.h"

namespace gyre::schedule {

class Ports {
 public:
  explicit Ports(const Network& network) {
    for (uint32_t kind = 0; kind < network.classes.size(); ++kind) {
      first_.push_back(static_cast<uint32_t>(times_.size()));
      uint32_t count = 0;
      for (Rank rank = 0; rank < network.ranks; ++rank) count = std::max(count, network.classes[kind].port(rank) + 1);
      for (uint32_t port = 0; port < count; ++port) {
        for (const bool inward : {false, true}) times_.push_back({kind, port, inward, 0});
      }
    }
    occupied_.resize(times_.size());
    waiting_.resize(times_.size());
  }

  struct Ends {
    uint32_t out = 0;
    uint32_t in = 0;
  };
  Ends ends(const Network& network, uint32_t kind, Rank from, Rank to) const {
    const LinkClass& links = network.classes[kind];
    return {first_[kind] + 2 * links.port(from), first_[kind] + 2 * links.port(to) + 1};
  }

  /// True: the connection has its ports, for one message. False: it waits for them, and release() will say when it has them.
  bool take(uint32_t connection, Ends ends) {
    if (connection >= connections_.size()) connections_.resize(connection + 1);
    connections_[connection].ends = ends;
    if (occupied_[ends.out] == 0 && occupied_[ends.in] == 0) {
      occupy(connection);
      return true;
    }
    wait(connection);
    return false;
  }
  /// The connection, which has been served, has another message.
  void wait(uint32_t connection) {
    const Ends ends = connections_[connection].ends;
    waiting_[ends.out].push_back({connection, ends.in});
    waiting_[ends.in].push_back({connection, ends.out});
  }
  /// A message of the connection is through, after `busy` seconds; calls start(connection) for those that get its ports.
  template <class Start>
  void release(uint32_t connection, double busy, Start start) {
    const Ends through = connections_[connection].ends;
    for (const uint32_t end : {through.out, through.in}) {
      occupied_[end] = 0;
      times_[end].busy += busy;
    }
    while (const auto next = longest_waiting(through)) {
      const Ends ends = connections_[*next].ends;
      remove(*next, ends.out);
      remove(*next, ends.in);
      occupy(*next);
      start(*next);
    }
  }

  std::vector<PortTime> used() const {
    std::vector<PortTime> out;
    std::copy_if(times_.begin(), times_.end(), std::back_inserter(out), [](const PortTime& time) { return time.busy > 0; });
    return out;
  }

 private:
  struct Waiting {
    uint32_t connection = 0;
    uint32_t far_end = 0;  // the other port that it needs
  };
  struct Connection {
    Ends ends;
    uint64_t turn = 0;  // when it was served last; 0: never
  };
  void occupy(uint32_t connection) {
    Connection& served = connections_[connection];
    occupied_[served.ends.out] = occupied_[served.ends.in] = 1;
    served.turn = ++turn_;
  }
  // Of the connections that wait for one of these and can start: who was served the longest ago, and of those that never were, who came
  // first.
  std::optional<uint32_t> longest_waiting(Ends ends) const {
    std::optional<uint32_t> best;
    for (const uint32_t end : {ends.out, ends.in}) {
      if (occupied_[end] != 0) continue;
      for (const Waiting& waiting : waiting_[end]) {
        if (occupied_[waiting.far_end] != 0) continue;
        const uint64_t turn = connections_[waiting.connection].turn;
        if (!best || turn < connections_[*best].turn) best = waiting.connection;
        if (turn == 0) break;
      }
    }
    return best;
  }
  void remove(uint32_t connection, uint32_t end) {
    auto& queue = waiting_[end];
    queue.erase(std::find_if(queue.begin(), queue.end(), [&](const Waiting& w) { return w.connection == connection; }));
  }

  std::vector<uint32_t> first_;  // [class]: its first direction; a port has two, outwards and inwards
  std::vector<PortTime> times_;  // [direction], as are the next two
  std::vector<char> occupied_;
  std::vector<std::vector<Waiting>> waiting_;  // in the order in which they came
  std::vector<Connection> connections_;
  uint64_t turn_ = 0;
};

}  // namespace gyre::schedule
