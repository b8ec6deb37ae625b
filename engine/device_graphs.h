// A communicator's collectives in CUDA graphs, on the host's side: what each runs, how often it has, and whether a graph of theirs is under
// way. Used under the communicator's lock. It must not know: the GPU, streams, threads.
#pragma once
#include <cstdint>
#include <map>
#include <memory>

#include "engine/device_replays.h"
#include "engine/device_run.h"
#include "engine/in_flight.h"

namespace gyre::engine {

/// Captured once, on all ranks as the same call; run whenever its kernel begins. Its messages carry the call's word and how often it has
/// run: ranks that replay unlike each other find that out as those do that call unlike each other.
struct CapturedCollective {
  uint64_t graph = 0;
  DeviceReplays::Place place;
  Operation operation;
  size_t kernels = 0;
  std::shared_ptr<DeviceRun> run;
  uint64_t runs = 0;
};

class DeviceGraphs {
 public:
  bool empty() const { return captured_.empty(); }
  size_t size() const { return captured_.size(); }
  void add(CapturedCollective captured) { captured_.emplace(captured.place.id, std::move(captured)); }
  void remove(uint64_t id) { captured_.erase(id); }
  /// Null: its graph is gone.
  CapturedCollective* find(uint64_t id) {
    const auto found = captured_.find(id);
    return found != captured_.end() ? &found->second : nullptr;
  }
  /// As an operation for its next run, with tickets from `first` on.
  static Operation next_run(CapturedCollective&, uint64_t first);
  /// A graph has begun one of its collectives more often than another: it is between two of them.
  bool midway() const;

 private:
  std::map<uint64_t, CapturedCollective> captured_;  // by id
};

}  // namespace gyre::engine
