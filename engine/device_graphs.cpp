#include "engine/device_graphs.h"

#include "base/hash.h"

namespace gyre::engine {

Operation DeviceGraphs::next_run(CapturedCollective& captured, uint64_t first) {
  Operation next = captured.operation;
  next.call.word = mix(next.call.word + ++captured.runs * 0x9e3779b97f4a7c15);
  captured.run->again({first, first + captured.kernels, HandOff::stays, true}, next.call.word);
  next.bound = captured.run;
  return next;
}

bool DeviceGraphs::midway() const {
  std::map<uint64_t, uint64_t> runs;  // by graph
  for (const auto& [id, captured] : captured_) {
    if (runs.emplace(captured.graph, captured.runs).first->second != captured.runs) return true;
  }
  return false;
}

}  // namespace gyre::engine
