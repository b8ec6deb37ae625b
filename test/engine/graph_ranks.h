// Graphs of collectives, for tests of them.
#pragma once
#include <memory>
#include <utility>

#include "test/engine/device_ranks.h"

namespace gyre::test {

using GraphPointer = std::unique_ptr<TestGraph>;

/// What `body` gives the stream, as a graph, or why it could not.
template <class Body>
Result<GraphPointer> capture(TestStream& stream, const Body& body) {
  stream.begin_capture();
  const Status given = body();
  GraphPointer graph = stream.end_capture();
  if (!given) return given.error();
  return graph;
}

inline Status sum(DeviceRank& on, DeviceArray<int64_t>& data, TestStream& stream, std::optional<engine::HandOff> hand_off = {}) {
  const engine::Call call{Collective::all_reduce, data.size(), DataType::int64, ReduceOp::sum, 0};
  return on.device.enqueue(call, data.data(), data.data(), stream.handle(), hand_off);
}
inline Status sum(DeviceRank& on, DeviceArray<int64_t>& data) { return sum(on, data, on.stream); }

inline Result<std::unique_ptr<engine::DeviceCommunicator>> second_communicator(DeviceRank& on, kernels::Gpu& gpu) {
  return engine::DeviceCommunicator::create(GYRE_TRY(on.host.split(0, on.rank(), nullptr)), gpu);
}
inline Result<std::unique_ptr<engine::DeviceCommunicator>> second_communicator(DeviceRank& on) {
  return second_communicator(on, on.gpu.gpu());
}

/// Empty: this call, replayed twice, gives the bits that it gives on the host.
inline std::string same_bits_in_a_graph(DeviceRank& on, const engine::Call& call) {
  CallMemory here(call, on.rank(), on.size(), false);
  DeviceArray<std::byte> there(on, here.bytes);
  auto graph =
      capture(on.stream, [&] { return on.device.enqueue(call, here.input(there.data()), here.output(there.data()), on.stream.handle()); });
  if (!graph) return graph.error().what;
  for (int replay = 0; replay < 2; ++replay) (*graph)->launch(on.stream);
  Status status = on.host.run(call, here.input(here.bytes.data()), here.output(here.bytes.data()));
  const Bytes found = there.get();
  if (status) status = on.device.status();
  const std::string wrong = status ? difference(call.type, found, here.bytes) : status.error().what;
  return wrong.empty() ? "" : engine::in_words(call, "in a graph: ") + wrong;
}

}  // namespace gyre::test
