// What is measured over a net plugin's connections: bandwidth with messages under way, and the time of a message there and back. Both
// ranks call; every figure is the slower rank's, and the data is checked in a pass of its own.
// The time is cut into batches. One in which a rank was ready to run and had no processor is disturbed, and left out where enough others
// are left, so that figures can be had on a machine that does something else too.
#pragma once
#include <span>
#include <vector>

#include "perf/net_figures.h"
#include "perf/net_flow.h"

namespace gyre::perf {

struct NetSetting {
  int connections = 1;
  int depth = 8;
  bool bidirectional = false;
  bool shared_buffer = false;  ///< all messages of a connection from and to the same memory
  int checked = 9;             ///< messages of each connection that are checked; 0: none
  std::chrono::milliseconds time{200};
};

class NetMeasurement {
 public:
  static Result<NetMeasurement> make(NetPlugin&, const NetConnections&, transport::Bootstrap&, NetPatience&, const NetSetting&);

  /// Bytes that were not as they should be, in both directions.
  Result<uint64_t> check(size_t bytes);
  Result<NetBandwidth> bandwidth(size_t bytes);
  Result<NetLatency> latency(size_t bytes);

 private:
  struct Flows {
    std::vector<NetSlots> slots;
    std::vector<NetFlow> flows;
  };
  struct Context {
    NetPlugin& plugin;
    const NetConnections& connections;
    transport::Bootstrap& bootstrap;
    NetPatience& patience;
  };

  NetMeasurement(const Context& context, const NetSetting& setting) : context_(context), setting_(setting) {}
  Result<Flows> flows(std::vector<NetComm> comms, size_t bytes, int depth) const;
  std::vector<NetComm> comms(bool both_ways) const;
  std::vector<NetComm> first_of_each_way() const;
  Status meet();
  Result<NetBatch> run(Flows&, uint64_t messages_each);
  Result<NetBatch> bounce(Flows&, std::span<uint32_t> nanoseconds);
  Result<NetBatch> slower(double seconds, double waited_us);

  Context context_;
  NetSetting setting_;
  Flows tokens_;  ///< small messages, by which ranks start together
};

}  // namespace gyre::perf
