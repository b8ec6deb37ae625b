#include "engine/device_packet_run.h"

#include <fmt/format.h>

#include <array>

namespace gyre::engine {
namespace {

constexpr std::array<size_t, 1> one_message{1};

}  // namespace

PacketRun::PacketRun(std::shared_ptr<const Planned> planned, const std::vector<transport::Fifo*>& fifos, const Identity& call,
                     DeviceQueue& queue, const Tickets& tickets, TimeLimit limit)
    : planned_(std::move(planned)), call_(call), queue_(queue), tickets_(tickets), limit_(limit) {
  for (transport::Fifo* const fifo : fifos) {
    auto& link = links_.emplace_back();
    if (fifo == nullptr) continue;
    link = device_link({*fifo, call.word, one_message, one_message, staging_}, true);
    link->note_made();  // word of it goes before the kernel has
  }
}

Work::Moved PacketRun::move() {
  const bool ends = !ended_ && queue_.ended(tickets_) == tickets_.end;
  bool any = ends, idle = true;
  ended_ = ended_ || ends;
  for (size_t peer = 0; peer < links_.size(); ++peer) {
    DeviceLink* const link = links_[peer].get();
    if (link == nullptr) continue;
    if (ends) link->note_read();
    any |= link->receive();
    any |= link->send();
    if (link->strange()) stranger_ = static_cast<Rank>(peer);
    idle = idle && link->idle();
  }
  return {any, ended_ && idle};
}

// Those that have not called, and if all have, those whose kernels have not ended.
std::vector<Rank> PacketRun::awaited() const {
  std::vector<Rank> uncalled, unended;
  for (size_t peer = 0; peer < links_.size(); ++peer) {
    if (links_[peer] == nullptr) continue;
    if (!links_[peer]->has(0)) uncalled.push_back(static_cast<Rank>(peer));
    if (links_[peer]->awaits_peer()) unended.push_back(static_cast<Rank>(peer));
  }
  return uncalled.empty() ? unended : uncalled;
}

std::string PacketRun::where() const {
  const auto peers = awaited();
  if (waits_for_itself()) return "for the GPU";
  if (peers.empty()) return ended_ ? "for its last words to leave" : "for the GPU";
  return fmt::format("for rank {}{}", peers[0], ended_ ? " to read its packets" : "'s packets");
}

}  // namespace gyre::engine
