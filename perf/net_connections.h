// Connections of a net plugin between two ranks, set up as NCCL's Service thread does: handles travel through the bootstrap, connect and
// accept are polled in turn until all are there. Whoever waits here or in net_flow.h waits by a NetPatience: it yields the processor,
// and ends when the other rank has given up or nothing moves for too long.
#pragma once
#include <chrono>
#include <memory>
#include <vector>

#include "perf/net_plugin.h"
#include "transport/bootstrap.h"

namespace gyre::perf {

/// One thread's.
class NetPatience {
 public:
  NetPatience(const transport::Bootstrap& bootstrap, std::chrono::milliseconds limit, bool yields)
      : bootstrap_(bootstrap), limit_(limit), yields_(yields) {}

  /// To be called whenever nothing moved. `what`: what is waited for.
  Status wait(const char* what);
  void moved() { idle_ = 0; }

 private:
  const transport::Bootstrap& bootstrap_;
  std::chrono::milliseconds limit_;
  bool yields_;
  uint64_t idle_ = 0;  ///< calls since something moved
  std::chrono::steady_clock::time_point since_;
};

/// A comm of the plugin's.
struct NetComm {
  void* comm;
  bool sends;
};

class NetConnections {
 public:
  /// `count` connections from rank 0 to rank 1, and `back` of them the other way. Called by both ranks.
  static Result<std::unique_ptr<NetConnections>> make(NetPlugin&, void* context, int device, transport::Bootstrap&, NetPatience&, int count,
                                                      int back);
  NetConnections(const NetConnections&) = delete;
  NetConnections& operator=(const NetConnections&) = delete;
  ~NetConnections();  ///< closes what close() has not
  Status close();

  const std::vector<NetComm>& sends() const { return sends_; }
  const std::vector<NetComm>& receives() const { return receives_; }

 private:
  explicit NetConnections(NetPlugin& plugin) : plugin_(plugin) {}
  Status connect_all(void* context, int device, std::vector<NetHandle> handles, std::vector<void*>& listening, NetPatience&);

  NetPlugin& plugin_;
  std::vector<NetComm> sends_;
  std::vector<NetComm> receives_;
};

}  // namespace gyre::perf
