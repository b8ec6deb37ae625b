#include "test/plugin/caller_proxies.h"

#include <sched.h>

#include <algorithm>
#include <thread>

namespace gyre::test {

Proxies::Proxies(const Caller& caller, const Job& job)
    : caller_(caller), job_(job), random_(mixed(job.traffic.seed, static_cast<uint64_t>(job.rank))) {
  for (const Edge& edge : job.edges()) {
    if (edge.to == job.rank) setups_.push_back(std::make_unique<Accepting>(caller, job, edge));
    if (edge.from == job.rank) setups_.push_back(std::make_unique<Connecting>(caller, job, edge));
  }
  std::shuffle(setups_.begin(), setups_.end(), random_);
  expected_ = setups_.size();
}

Status Proxies::serve() {
  std::thread progress([this] { drive(); });
  const Status made = make_and_wait();
  stop_ = true;
  progress.join();
  if (!failed_ || !made) job_.say((failed_ ? made : failed_).error().what);
  close();
  return failed_ ? made : failed_;
}

Status Proxies::make_and_wait() {
  while (!lost_ && !(finished_ && setups_.empty())) {
    const auto quiet = Clock::now() - moved_.load();
    if (told_to_abort) return Error{Code::timeout, "aborted by the user"};
    if (quiet > job_.patience) {
      return Error{Code::timeout, fmt::format("aborted: {} of {} connections made, and nothing moved for {} s", channels_.size(), expected_,
                                              job_.patience.count())};
    }
    GYRE_TRY(make());
    GYRE_TRY(register_something());
    sched_yield();
  }
  return {};
}

// Each connection in turn; who is made goes over to the Progress thread.
Status Proxies::make() {
  for (std::unique_ptr<Setup>& setup : setups_) {
    std::unique_ptr<Channel> channel = GYRE_TRY(setup->step());
    if (channel == nullptr) continue;
    setup.reset();
    moved_ = Clock::now();
    const std::lock_guard lock(mutex_);
    new_channels_.push_back(channels_.emplace_back(std::move(channel)).get());
  }
  std::erase(setups_, nullptr);
  return {};
}

// Any part of any buffer that traffic uses, as a user's memory may overlap with what is registered; some given back, in any order.
Status Proxies::register_something() {
  if (channels_.empty()) return {};
  Channel& channel = *channels_[random_() % channels_.size()];
  const std::span<std::byte> buffer = channel.buffer(protocols[random_() % std::size(protocols)]);
  const size_t first = random_() % buffer.size();
  const size_t bytes = 1 + random_() % (buffer.size() - first);
  void* memory = GYRE_TRY(caller_.plugin.register_memory(channel.comm(), buffer.data() + first, bytes, NCCL_PTR_HOST));
  if (memory == nullptr) return Error{Code::internal, "WRONG: regMr gave no handle"};
  registered_.push_back({&channel, memory});
  while (registered_.size() > random_() % 16) {
    std::swap(registered_[random_() % registered_.size()], registered_.back());
    GYRE_TRY(caller_.plugin.deregister(registered_.back().channel->comm(), registered_.back().memory));
    registered_.pop_back();
  }
  return {};
}

void Proxies::close() {
  const auto begun = Clock::now();
  for (const Registered& registered : registered_) {
    const Status done = caller_.plugin.deregister(registered.channel->comm(), registered.memory);
    if (!done) job_.say("while closing: " + done.error().what);
  }
  flows_.clear();
  std::shuffle(channels_.begin(), channels_.end(), random_);
  for (const std::unique_ptr<Channel>& channel : channels_) channel->close();
  const double seconds = std::chrono::duration<double>(Clock::now() - begun).count();
  job_.say(fmt::format("closed {} of {} connections in {:.3f} s", channels_.size(), expected_, seconds));
}

}  // namespace gyre::test
