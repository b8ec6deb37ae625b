#include "perf/net_flow.h"

#include <climits>
#include <cstring>

#include "perf/net_pattern.h"

namespace gyre::perf {
namespace {

constexpr size_t line_bytes = 64;
constexpr int unreceived = 0x5a;
constexpr int message_tag = 0;

}  // namespace

Result<NetSlots> NetSlots::make(NetPlugin& plugin, NetComm comm, size_t bytes, int depth, bool shared) {
  const size_t stride = shared ? 0 : (bytes + line_bytes - 1) / line_bytes * line_bytes;
  const size_t all = shared ? bytes : stride * static_cast<size_t>(depth);
  NetSlots slots(GYRE_TRY(SweepBuffer::allocate(all)), bytes, stride);
  std::memset(slots.buffer_.data(), unreceived, all);  // pages come from the system now, not in the timed part
  void* mhandle = GYRE_TRY(plugin.register_memory(comm.comm, slots.buffer_.data(), std::max<size_t>(all, 1), NCCL_PTR_HOST));
  slots.registration_ = std::make_unique<Registration>(plugin, comm, mhandle);
  return slots;
}

NetSlots::~NetSlots() = default;

NetSlots::Registration::~Registration() { (void)plugin.deregister(comm.comm, mhandle); }

void NetFlow::start(uint64_t messages, bool checked) {
  total_ = messages;
  posted_ = done_ = wrong_ = 0;
  next_slot_ = oldest_slot_ = 0;
  checked_ = checked;
}

Status NetFlow::post(bool& moved) {
  const std::span<std::byte> slot = slots_.slot(next_slot_);
  void** request = &requests_[next_slot_];
  *request = nullptr;
  ncclResult_t code = ncclSuccess;
  if (comm_.sends) {
    if (checked_) fill_pattern(slot, pattern_of(posted_));
    code = plugin_.isend(comm_.comm, slot.data(), slot.size(), message_tag, slots_.mhandle(), request);
  } else {
    if (checked_) std::memset(slot.data(), unreceived, slot.size());
    void* data = slot.data();
    size_t bytes = slot.size();
    int its_tag = message_tag;
    void* mhandle = slots_.mhandle();
    code = plugin_.irecv(comm_.comm, 1, &data, &bytes, &its_tag, &mhandle, request);
  }
  if (code != ncclSuccess) return plugin_.error(comm_.sends ? "isend" : "irecv", code);
  if (*request == nullptr) return {};
  ++posted_;
  next_slot_ = after(next_slot_);
  moved = true;
  return {};
}

Status NetFlow::test(bool& moved) {
  int done = 0;
  std::array<int, NCCL_NET_MAX_REQUESTS> sizes{};  // as much room as NCCL has
  void* request = requests_[oldest_slot_];
  ncclResult_t code = plugin_.test(request, &done, sizes.data());
  if (code != ncclSuccess) return plugin_.error(comm_.sends ? "test of a send" : "test of a receive", code);
  if (done == 0) return {};
  if (!comm_.sends) {
    if (checked_) check(sizes[0]);
    code = plugin_.consumed(comm_.comm, 1, request);
    if (code != ncclSuccess) return plugin_.error("irecvConsumed", code);
  }
  ++done_;
  oldest_slot_ = after(oldest_slot_);
  moved = true;
  return {};
}

void NetFlow::check(int received) {
  const std::span<std::byte> slot = slots_.slot(oldest_slot_);
  if (static_cast<size_t>(received) != std::min<size_t>(slot.size(), INT_MAX)) ++wrong_;  // the size alone is something wrong
  wrong_ += count_wrong_bytes(slot, pattern_of(done_));
}

Status run_flows(std::span<NetFlow> flows, NetPatience& patience) {
  while (true) {
    bool moved = false;
    bool finished = true;
    for (NetFlow& flow : flows) {
      if (flow.finished()) continue;
      finished = false;
      GYRE_TRY(flow.step(moved));
    }
    if (finished) return {};
    if (moved)
      patience.moved();
    else
      GYRE_TRY(patience.wait("messages"));
  }
}

}  // namespace gyre::perf
