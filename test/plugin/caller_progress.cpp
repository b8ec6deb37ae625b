#include <sched.h>

#include <algorithm>

#include "test/plugin/caller_proxies.h"

namespace gyre::test {

void Proxies::drive() {
  while (!stop_) {
    Status status = drive_once();
    if (status) continue;
    const std::lock_guard lock(mutex_);
    failed_ = std::move(status);
    lost_ = true;
    return;
  }
}

Status Proxies::drive_once() {
  {
    const std::lock_guard lock(mutex_);
    for (Channel* channel : new_channels_) {
      if (channel->sends())
        flows_.push_back(std::make_unique<SendFlow>(*channel));
      else
        flows_.push_back(std::make_unique<ReceiveFlow>(*channel));
    }
    new_channels_.clear();
  }
  bool moved = false;
  for (const std::unique_ptr<Flow>& flow : flows_) moved |= GYRE_TRY(flow->progress());
  if (flows_.size() == expected_ && !finished_) {
    finished_ = std::all_of(flows_.begin(), flows_.end(), [](const auto& flow) { return flow->finished(); });
  }
  if (moved)
    moved_ = Clock::now();
  else
    sched_yield();
  tell(moved);
  return {};
}

// What a test waits for: that all connections move, that messages go on, that nothing moves any more.
void Proxies::tell(bool moved) {
  quiet_ = moved || flows_.size() < expected_ ? 0 : quiet_ + 1;
  if (quiet_ == 2000) job_.say("idle");
  if (Clock::now() < told_ + std::chrono::milliseconds(500)) return;
  told_ = Clock::now();
  uint64_t messages = 0;
  for (const std::unique_ptr<Flow>& flow : flows_) messages += flow->messages();
  const bool all = flows_.size() == expected_ && std::all_of(flows_.begin(), flows_.end(), [](const auto& f) { return f->messages() > 0; });
  if (messages != messages_told_ && all) job_.say(fmt::format("{} messages", messages));
  messages_told_ = messages;
}

}  // namespace gyre::test
