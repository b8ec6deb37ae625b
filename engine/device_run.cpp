#include "engine/device_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "schedule/print.h"

namespace gyre::engine {

DeviceRun::DeviceRun(std::shared_ptr<const Plan> plan, const Identity& call, DeviceSteps steps, DeviceQueue& queue,
                     const DeviceLinks& links, const Tickets& tickets, TimeLimit limit)
    : plan_(std::move(plan)),
      call_(call),
      steps_(std::move(steps)),
      queue_(queue),
      links_(links),
      tickets_(tickets),
      limit_(limit),
      state_(steps_.arriving.size()) {
  for (uint32_t c = 0; c < state_.size(); ++c) {
    if (steps_.arriving[c].empty() && steps_.leaving[c].empty()) continue;
    used_.push_back(c);
    state_[c].numbers.resize(links_.staging.slots.credits);
  }
}

Work::Moved DeviceRun::move() {
  bool any = note_ended();
  for (const uint32_t connection : used_) {
    any |= receive(connection);
    any |= send(connection);
  }
  any |= open();
  return {any, ended_ == steps_.kernels.size() && idle()};
}

bool DeviceRun::note_ended() {
  const auto ended = static_cast<uint32_t>(queue_.ended(tickets_) - tickets_.first);
  if (ended == ended_) return false;
  ended_ = ended;
  for (; steps_ended_ < steps_.steps.size() && steps_.steps[steps_ended_].kernels_end <= ended; ++steps_ended_) {
    const DeviceStep& step = steps_.steps[steps_ended_];
    for (const Passing& arrival : steps_.arrivals(step)) ++state_[arrival.connection].consumed;
    for (const Passing& message : steps_.sends(step)) ++state_[message.connection].made;
  }
  return true;
}

bool DeviceRun::receive(uint32_t connection) {
  const std::vector<size_t>& bytes = steps_.arriving[connection];
  transport::Fifo& from = fifo(connection);
  Link& link = state_[connection];
  const uint32_t room = std::min(static_cast<uint32_t>(bytes.size()), link.consumed + links_.staging.slots.credits);
  for (; from.posted() && link.announced < room; ++link.announced) {
    std::byte* const place = from.direct() ? links_.staging.incoming(connection, link.announced) : nullptr;
    if (!from.expect(call_.word, place, bytes[link.announced])) break;
  }
  const uint32_t before = link.arrived;
  for (; link.arrived < room; ++link.arrived) {
    const transport::Arrival arrival = from.front();
    if (arrival.data == nullptr) break;
    // Nothing is touched before both sides agree on what they run.
    if (arrival.plan != call_.word || arrival.bytes != bytes[link.arrived]) {
      stranger_ = peer(connection);
      break;
    }
    std::byte* const place = links_.staging.incoming(connection, link.arrived);
    if (arrival.data != place && arrival.bytes != 0) std::memcpy(place, arrival.data, arrival.bytes);
    from.pop();
  }
  return link.arrived != before;
}

bool DeviceRun::send(uint32_t connection) {
  transport::Fifo& to = fifo(connection);
  Link& link = state_[connection];
  const uint32_t before = link.sent;
  while (link.sent < link.made && pass(to, link, links_.staging.outgoing(connection, link.sent), steps_.leaving[connection][link.sent]))
    ++link.sent;
  if (!to.posted()) {
    link.freed = link.sent;
  } else if (link.freed < link.sent) {  // asking also sends what could not be sent yet
    const uint64_t completed = to.completed();
    while (link.freed < link.sent && link.numbers[link.freed % link.numbers.size()] <= completed) ++link.freed;
  }
  return link.sent != before;
}

// False: no credit.
bool DeviceRun::pass(transport::Fifo& to, Link& link, const std::byte* message, size_t bytes) const {
  if (to.direct()) {
    if (!to.send_from(call_.word, message, bytes)) return false;
  } else {
    std::byte* const slot = to.reserve(bytes);
    if (slot == nullptr) return false;
    if (bytes != 0) std::memcpy(slot, message, bytes);
    to.commit(call_.word, bytes);
  }
  link.numbers[link.sent % link.numbers.size()] = to.sent();
  return true;
}

bool DeviceRun::may_begin(const DeviceStep& step) const {
  const auto arrivals = steps_.arrivals(step);
  const auto sends = steps_.sends(step);
  return std::all_of(arrivals.begin(), arrivals.end(), [&](const Passing& m) { return m.number < state_[m.connection].arrived; }) &&
         std::all_of(sends.begin(), sends.end(),
                     [&](const Passing& m) { return m.number < state_[m.connection].freed + links_.staging.slots.credits; });
}

bool DeviceRun::open() {
  const uint32_t before = opened_;
  for (const DeviceStep* step = next(); step != nullptr && may_begin(*step); step = next()) {
    const DeviceKernel& kernel = steps_.kernels[opened_];
    if (tickets_.hand_off == HandOff::stays && ended_ < kernel.after) break;
    if (!queue_.prepare(plan_->call(), tickets_, kernel, tickets_.first + opened_)) break;
    ++opened_;
  }
  if (opened_ == before) return false;
  queue_.open(tickets_.first + opened_);
  return true;
}

bool DeviceRun::idle() const {
  return std::all_of(used_.begin(), used_.end(), [&](uint32_t connection) {
    return state_[connection].freed == steps_.leaving[connection].size() &&
           state_[connection].arrived == steps_.arriving[connection].size();
  });
}

std::vector<Rank> DeviceRun::awaited() const {
  std::vector<Rank> peers;
  if (const DeviceStep* step = next()) {
    for (const Passing& m : steps_.arrivals(*step)) {
      if (m.number >= state_[m.connection].arrived) peers.push_back(peer(m.connection));
    }
  }
  for (const uint32_t connection : used_) {
    if (state_[connection].sent < state_[connection].made) peers.push_back(peer(connection));
  }
  return peers;
}

std::string DeviceRun::where() const {
  const DeviceStep* step = next();
  if (step == nullptr) return ended_ < opened_ ? "for the GPU" : "for its last sends to complete";
  const schedule::Schedule& schedule = plan_->schedule();
  const auto& [channel, strand, cursor] = step->turn;
  const auto peers = awaited();
  std::string text = peers.empty() ? "for the GPU" : fmt::format("for rank {}", peers[0]);
  text += fmt::format(" in step {} ({}) of round {}", cursor.step,
                      schedule::describe(schedule, schedule.program(links_.rank, channel, strand).steps[cursor.step]), step->round);
  if (schedule.channels > 1) text += fmt::format(" on channel {}", channel);
  if (schedule.strands > 1) text += fmt::format(" on strand {}", strand);
  return text;
}

}  // namespace gyre::engine
