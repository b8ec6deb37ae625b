#include "test/plugin/caller_flow.h"

#include <algorithm>

namespace gyre::test {

Error Flow::wrong(int sender, int step, const std::string& what) const {
  const Edge& edge = channel_.edge();
  return {Code::internal, fmt::format("WRONG: connection {} from rank {} to {}, operation {}, sender {}, step {} of {}, {} bytes: {}",
                                      edge.number, edge.from, edge.to, operation_, sender, step, script_.steps(operation_, sender),
                                      script_.bytes(operation_, sender, step), what)};
}

void SendFlow::begin() {
  senders_.assign(static_cast<size_t>(channel_.job().traffic.senders), {});
  for (size_t i = 0; i < senders_.size(); ++i) senders_[i].steps = script_.steps(operation_, static_cast<int>(i));
}

Result<bool> SendFlow::progress() {
  if (finished() || channel_.job().silent) return false;
  bool moved = false;
  for (int sender = 0; sender < channel_.job().traffic.senders; ++sender) {
    moved |= GYRE_TRY(post(sender));
    moved |= GYRE_TRY(test(sender));
  }
  if (std::all_of(senders_.begin(), senders_.end(), [](const Sender& sender) { return sender.done == sender.steps; })) {
    ++operation_;
    if (!finished()) begin();
  }
  return moved;
}

Result<bool> SendFlow::post(int number) {
  Sender& sender = senders_[static_cast<size_t>(number)];
  if (sender.posted == sender.steps || sender.posted == sender.done + steps_in_flight) return false;
  const Protocol protocol = script_.protocol(operation_);
  const std::span<std::byte> data = channel_.slot(protocol, number, sender.posted).first(script_.bytes(operation_, number, sender.posted));
  if (sender.filled == sender.posted) fill(script_.place(operation_, number, sender.filled++), data);
  void*& request = sender.requests[sender.posted % steps_in_flight];  // still the one of 8 steps ago
  perf::NetPlugin& plugin = channel_.plugin();
  const ncclResult_t result = plugin.isend(channel_.comm(), data.data(), data.size(), tag(number), channel_.memory(protocol), &request);
  if (result != ncclSuccess) return plugin.error("isend", result);
  if (request == nullptr) return false;
  ++sender.posted;
  if (messages_ + static_cast<uint64_t>(sender.posted) > 50) channel_.job().at(Point::sending);
  return true;
}

Result<bool> SendFlow::test(int number) {
  Sender& sender = senders_[static_cast<size_t>(number)];
  if (sender.done == sender.posted) return false;
  int done = 0;
  int size = 0;
  const ncclResult_t result = channel_.plugin().test(sender.requests[sender.done % steps_in_flight], &done, &size);
  if (result != ncclSuccess) return channel_.plugin().error("test of a send", result);
  if (done == 0) return false;
  const size_t bytes = script_.bytes(operation_, number, sender.done);
  if (static_cast<size_t>(size) != bytes) return wrong(number, sender.done, fmt::format("sent {}", size));
  // The slot is the sender's again: what is written into it now must not arrive.
  wipe(channel_.slot(script_.protocol(operation_), number, sender.done).first(bytes));
  ++sender.done;
  ++messages_;
  return true;
}

}  // namespace gyre::test
