#include <algorithm>

#include "test/plugin/caller_flow.h"

namespace gyre::test {
namespace {

constexpr int most_grouped = 8;

}  // namespace

ReceiveFlow::ReceiveFlow(Channel& channel) : Flow(channel) {
  for (const Protocol protocol : protocols) wipe(channel.buffer(protocol));
  begin();
}

void ReceiveFlow::begin() {
  steps_ = posted_ = 0;
  for (int sender = 0; sender < channel_.job().traffic.senders; ++sender) steps_ = std::max(steps_, script_.steps(operation_, sender));
}

Result<bool> ReceiveFlow::progress() {
  if (finished() || channel_.job().deaf) return false;
  const bool posted = GYRE_TRY(post());
  const bool tested = GYRE_TRY(test());
  const bool moved = GYRE_TRY(take()) || tested || posted;
  if (posted_ == steps_ && groups_.empty()) {
    ++operation_;
    if (!finished()) begin();
  }
  if (!moved && posted_ > 0) channel_.job().at(Point::idle);
  return moved;
}

// A request for the next step of all senders that have one, in any order.
Result<bool> ReceiveFlow::post() {
  if (posted_ == steps_ || groups_.size() == steps_in_flight) return false;
  const Protocol protocol = script_.protocol(operation_);
  Group group;
  group.step = posted_;
  for (int sender = 0; sender < channel_.job().traffic.senders; ++sender) {
    if (posted_ < script_.steps(operation_, sender)) group.senders.push_back(sender);
  }
  const size_t n = group.senders.size();
  const uint64_t whim = script_.whim(operation_, posted_);
  std::rotate(group.senders.begin(), group.senders.begin() + static_cast<std::ptrdiff_t>(whim % n), group.senders.end());
  if (whim & 256) std::reverse(group.senders.begin(), group.senders.end());

  void *data[most_grouped], *memory[most_grouped];
  size_t bytes[most_grouped];
  int tags[most_grouped];
  for (size_t i = 0; i < n; ++i) {
    const std::span<std::byte> slot = channel_.slot(protocol, group.senders[i], posted_);
    data[i] = slot.data(), bytes[i] = slot.size(), tags[i] = tag(group.senders[i]), memory[i] = channel_.memory(protocol);
  }
  perf::NetPlugin& plugin = channel_.plugin();
  group.hinted = plugin.version() >= 9 && n == 1 && protocol != Protocol::simple && (whim & 512);
  group.request = group.hinted ? reinterpret_cast<void*>(NCCL_NET_OPTIONAL_RECV_COMPLETION) : stale_;
  const ncclResult_t result = plugin.irecv(channel_.comm(), static_cast<int>(n), data, bytes, tags, memory, &group.request);
  if (result != ncclSuccess) return plugin.error("irecv", result);
  if (group.request == nullptr) return false;
  if (group.request == reinterpret_cast<void*>(NCCL_NET_OPTIONAL_RECV_COMPLETION))
    return wrong(0, posted_, "irecv left the hint in *request");
  stale_ = group.request;
  groups_.push_back(std::move(group));
  ++posted_;
  return true;
}

// The oldest request that is not done, and no other, as NCCL does.
Result<bool> ReceiveFlow::test() {
  const auto oldest = std::find_if(groups_.begin(), groups_.end(), [](const Group& group) { return group.request != nullptr; });
  if (oldest == groups_.end()) return false;
  int done = 0;
  int sizes[most_grouped] = {};
  perf::NetPlugin& plugin = channel_.plugin();
  ncclResult_t result = plugin.test(oldest->request, &done, sizes);
  if (result != ncclSuccess) return plugin.error("test of a receive", result);
  if (done == 0) return false;
  GYRE_TRY(check_sizes(*oldest, sizes));
  result = plugin.consumed(channel_.comm(), static_cast<int>(oldest->senders.size()), std::exchange(oldest->request, nullptr));
  if (result != ncclSuccess) return plugin.error("irecvConsumed", result);
  return true;
}

Status ReceiveFlow::check_sizes(const Group& group, const int* sizes) const {
  for (size_t i = 0; i < group.senders.size(); ++i) {
    const bool unsaid = group.hinted && sizes[i] == 0;
    const bool right = static_cast<size_t>(sizes[i]) == script_.bytes(operation_, group.senders[i], group.step);
    if (!right && !unsaid) return wrong(group.senders[i], group.step, fmt::format("received {}", sizes[i]));
  }
  return {};
}

// What the GPU does with the oldest step: looks at the data, and gives the slots back.
Result<bool> ReceiveFlow::take() {
  if (groups_.empty() || groups_.front().request != nullptr) return false;
  const Group& group = groups_.front();
  const Status right = check_data(group);
  if (!right && group.hinted) return false;  // it is told by the data that it is there
  GYRE_TRY(right);
  for (const int sender : group.senders) {
    wipe(channel_.slot(script_.protocol(operation_), sender, group.step).first(script_.bytes(operation_, sender, group.step)));
  }
  messages_ += group.senders.size();
  groups_.pop_front();
  if (messages_ > 50) channel_.job().at(Point::receiving);
  return true;
}

Status ReceiveFlow::check_data(const Group& group) const {
  for (const int sender : group.senders) {
    const std::span<std::byte> slot = channel_.slot(script_.protocol(operation_), sender, group.step);
    const size_t bytes = script_.bytes(operation_, sender, group.step);
    const Place place = script_.place(operation_, sender, group.step);
    if (!holds(place, slot.first(bytes))) return wrong(sender, group.step, "other data than was sent");
    if (!is_untouched(slot.subspan(bytes))) return wrong(sender, group.step, "written behind the end");
  }
  return {};
}

}  // namespace gyre::test
