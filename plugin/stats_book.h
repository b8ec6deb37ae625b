// The connections of this process with what they count: the open ones, whose Counters are read, and what closed ones had. Bounded, however
// long a job runs: the last closed connections are kept one by one, those before them summed up by peer, and peers beyond a number as one.
// Not for two threads at once: its owner has the lock.
#pragma once
#include <deque>
#include <map>
#include <vector>

#include "plugin/counters.h"
#include "plugin/stats_text.h"

namespace gyre::plugin {

class StatsBook {
 public:
  struct Limits {
    size_t closed = 1024;  ///< connections told one by one
    size_t peers = 1024;   ///< and peers in each direction, of those that are not
  };

  StatsBook() = default;
  explicit StatsBook(Limits limits) : limits_(limits) {}

  void add(DeviceStats device) { devices_.push_back(std::move(device)); }
  /// The counters are read until they are closed; they are who this is.
  void opened(ConnectionStats, const Counters&);
  void closed(const Counters&);
  bool has_open() const { return !open_.empty(); }
  /// Devices and connections.
  StatsReport report() const;

 private:
  struct Open {
    ConnectionStats about;
    const Counters* counters;
  };
  void keep(ConnectionStats);
  EarlierStats& earlier_to(const ConnectionStats&);

  const Limits limits_{};
  std::vector<DeviceStats> devices_;
  uint64_t opened_ = 0;
  std::vector<Open> open_;
  std::deque<ConnectionStats> closed_;
  std::map<std::string_view, std::map<std::string, EarlierStats>> earlier_;  // by direction and peer
};

}  // namespace gyre::plugin
