#include "engine/device_run.h"

#include <fmt/format.h>

#include <algorithm>

#include "schedule/print.h"

namespace gyre::engine {

DeviceRun::DeviceRun(std::shared_ptr<const DeviceProgram> program, std::vector<std::unique_ptr<DeviceLink>> links, const Identity& call,
                     DeviceQueue& queue, const Tickets& tickets, TimeLimit limit)
    : program_(std::move(program)), call_(call), queue_(queue), tickets_(tickets), limit_(limit), links_(std::move(links)) {
  for (uint32_t c = 0; c < links_.size(); ++c) {
    if (links_[c] != nullptr) used_.push_back(c);
  }
}

void DeviceRun::again(const Tickets& tickets, uint64_t word) {
  tickets_ = tickets;
  call_.word = word;
  for (const uint32_t connection : used_) links_[connection]->again(word);
  opened_ = ended_ = steps_ended_ = 0;
  stranger_ = -1;
}

Work::Moved DeviceRun::move() {
  bool any = note_ended();
  for (const uint32_t connection : used_) {
    any |= links_[connection]->receive();
    any |= links_[connection]->send();
    if (links_[connection]->strange() || links_[connection]->wrong()) stranger_ = peer(connection);
  }
  any |= open();
  return {any, ended_ == steps().kernels.size() && idle()};
}

std::optional<Error> DeviceRun::wrong() const {
  for (const uint32_t connection : used_) {
    if (auto error = links_[connection]->wrong()) return error;
  }
  return std::nullopt;
}

bool DeviceRun::note_ended() {
  const auto ended = static_cast<uint32_t>(queue_.ended(tickets_) - tickets_.first);
  if (ended == ended_) return false;
  ended_ = ended;
  for (; steps_ended_ < steps().steps.size() && steps().steps[steps_ended_].kernels_end <= ended; ++steps_ended_) {
    const DeviceStep& step = steps().steps[steps_ended_];
    for (const Passing& arrival : steps().arrivals(step)) links_[arrival.connection]->note_read();
    for (const Passing& message : steps().sends(step)) links_[message.connection]->note_made();
  }
  return true;
}

bool DeviceRun::may_begin(const DeviceStep& step) const {
  const auto arrivals = steps().arrivals(step);
  const auto sends = steps().sends(step);
  return std::all_of(arrivals.begin(), arrivals.end(), [&](const Passing& m) { return links_[m.connection]->has(m.number); }) &&
         std::all_of(sends.begin(), sends.end(), [&](const Passing& m) { return links_[m.connection]->has_room(m.number); });
}

bool DeviceRun::open() {
  const uint32_t before = opened_;
  for (const DeviceStep* step = next(); step != nullptr && may_begin(*step); step = next()) {
    const DeviceKernel& kernel = steps().kernels[opened_];
    if (tickets_.hand_off == HandOff::stays && ended_ < kernel.after) break;
    if (!queue_.prepare(program_->plan->call(), tickets_, kernel, tickets_.first + opened_)) break;
    ++opened_;
  }
  if (opened_ == before) return false;
  queue_.open(tickets_, tickets_.first + opened_);
  return true;
}

bool DeviceRun::idle() const {
  return std::all_of(used_.begin(), used_.end(), [&](uint32_t connection) { return links_[connection]->idle(); });
}

std::vector<Rank> DeviceRun::awaited() const {
  std::vector<Rank> peers;
  if (const DeviceStep* step = next()) {
    for (const Passing& m : steps().arrivals(*step)) {
      if (!links_[m.connection]->has(m.number)) peers.push_back(peer(m.connection));
    }
  }
  for (const uint32_t connection : used_) {
    if (links_[connection]->awaits_peer()) peers.push_back(peer(connection));
  }
  return peers;
}

std::string DeviceRun::where() const {
  const DeviceStep* step = next();
  const auto peers = awaited();
  if (step == nullptr) {
    if (ended_ < opened_) return "for the GPU";
    return peers.empty() ? "for its last sends to complete" : fmt::format("for rank {} to read its last messages", peers[0]);
  }
  const schedule::Schedule& schedule = program_->plan->schedule();
  const auto& [channel, strand, cursor] = step->turn;
  std::string text = peers.empty() ? "for the GPU" : fmt::format("for rank {}", peers[0]);
  text += fmt::format(" in step {} ({}) of round {}", cursor.step,
                      schedule::describe(schedule, schedule.program(program_->rank, channel, strand).steps[cursor.step]), step->round);
  if (schedule.channels > 1) text += fmt::format(" on channel {}", channel);
  if (schedule.strands > 1) text += fmt::format(" on strand {}", strand);
  return text;
}

}  // namespace gyre::engine
