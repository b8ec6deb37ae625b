#include "engine/machines.h"

#include <fmt/format.h>

#include "schedule/print.h"

namespace gyre::engine {
namespace {

std::string in_words(const schedule::Blocked& blocked) {
  switch (blocked.wait) {
    case schedule::Wait::arrival:
      return fmt::format("for a message from rank {}", blocked.peer);
    case schedule::Wait::credit:
      return fmt::format("for room to send to rank {}", blocked.peer);
    case schedule::Wait::completion:
      return fmt::format("for its sends to rank {} to complete", blocked.peer);
    default:
      return "to begin";
  }
}

}  // namespace

void Machines::bind(const Plan& plan, const Identity& call, const Buffers& buffers) {
  plan_ = &plan;
  call_ = call;
  std::byte* memory = scratch(plan.scratch_bytes());
  running_.clear();
  for (uint32_t channel = 0; channel < plan.schedule().channels; ++channel) {
    auto& strands = kept_[channel];
    while (strands.size() < plan.schedule().strands) {
      strands.push_back(std::make_unique<HostMachine>(rank_, channel, static_cast<uint32_t>(strands.size()), fifos_[channel], away_));
    }
    for (uint32_t strand = 0; strand < plan.schedule().strands; ++strand) {
      running_.push_back(strands[strand].get());
      running_.back()->bind(plan, call.word, buffers, memory);
    }
  }
}

std::byte* Machines::scratch(size_t bytes) {
  if (bytes > scratch_bytes_) {
    scratch_.reset();
    scratch_.reset(static_cast<std::byte*>(::operator new (bytes, std::align_val_t{page})));
    scratch_bytes_ = bytes;
  }
  return scratch_.get();
}

Work::Moved Machines::move() {
  Moved moved{false, true};
  for (HostMachine* machine : running_) {
    moved.any |= machine->run();
    moved.done &= machine->done();
  }
  return moved;
}

Rank Machines::stranger() const {
  for (const HostMachine* machine : running_) {
    if (machine->mismatched() >= 0) return machine->mismatched();
  }
  return -1;
}

std::vector<Rank> Machines::awaited() const {
  std::vector<Rank> peers, of_last_sends;
  for (const HostMachine* machine : running_) {
    const auto awaited = machine->awaited();
    auto& all = machine->step() != nullptr ? peers : of_last_sends;  // where() tells of the former first
    all.insert(all.end(), awaited.begin(), awaited.end());
  }
  peers.insert(peers.end(), of_last_sends.begin(), of_last_sends.end());
  return peers;
}

Rank Machines::awaits_only() const {
  Rank only = -1;
  for (const HostMachine* machine : running_) {
    if (machine->step() == nullptr) return -1;  // a completion is awaited
    const Rank peer = machine->blocked().peer;
    if (machine->lends()) return -1;  // and what another has read may let a message be announced
    if (peer < 0 || (only >= 0 && peer != only)) return -1;
    only = peer;
  }
  return only;
}

// The first that has steps left to run; null: none.
const HostMachine* Machines::waiting() const {
  for (const HostMachine* machine : running_) {
    if (machine->step() != nullptr) return machine;
  }
  return nullptr;
}

std::string Machines::where() const {
  const HostMachine* machine = waiting();
  if (machine == nullptr) {
    const auto peers = awaited();
    return peers.empty() ? "for its last sends to complete" : fmt::format("for its last sends to rank {} to complete", peers[0]);
  }
  const schedule::Schedule& schedule = plan_->schedule();
  std::string text = fmt::format("{} in step {} ({}) of round {}", in_words(machine->blocked()), machine->position().cursor.step,
                                 schedule::describe(schedule, *machine->step()), machine->position().round);
  if (schedule.channels > 1) text += fmt::format(" on channel {}", machine->program().channel);
  if (schedule.strands > 1) text += fmt::format(" on strand {}", machine->program().strand);
  return text;
}

}  // namespace gyre::engine
