#include "engine/joining.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <future>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/log.h"
#include "engine/choice.h"

namespace gyre::engine {

Joining::Joining(transport::Bootstrap& bootstrap, const Config& config, std::vector<bool> wanted, std::span<const std::string> ports)
    : bootstrap_(bootstrap),
      config_(config),
      ranks_(static_cast<size_t>(bootstrap.size())),
      own_(static_cast<size_t>(bootstrap.rank())),
      channels_(connected_channels(config)),
      wanted_(std::move(wanted)),
      ports_(ports),
      reasons_(ranks_) {}

Result<Backend> Joining::run(const transport::Device& device, const transport::Slots& slots) {
  backend_.device = device;
  backend_.endpoints.resize(ranks_ * channels_);
  if (std::find(wanted_.begin(), wanted_.end(), true) != wanted_.end()) GYRE_TRY(open(device, slots));
  const auto addresses = GYRE_TRY(bootstrap_.all_gather(backend_.listener ? backend_.listener->address() : ""));
  const auto attempts = GYRE_TRY(bootstrap_.all_gather(connect_down(addresses)));
  const auto deadline = Clock::now() + std::chrono::seconds(*config_.timeout);  // to try may have blocked: those who did are waited for
  while (!settled(attempts) && Clock::now() < deadline) {
    GYRE_TRY(accept());
    if (const Error* failure = bootstrap_.failure()) return *failure;
    std::this_thread::yield();
  }
  GYRE_TRY(keep_common());
  return std::move(backend_);
}

Status Joining::open(const transport::Device& device, const transport::Slots& slots) {
  auto worker = open_worker(device, slots, config_, ports_);
  auto listener = worker ? (*worker)->listen() : Result<std::unique_ptr<transport::Listener>>(worker.error());
  if (!listener && *config_.transport == "auto" && device.backend == "verbs") {
    // Another transport comes after it. Peers get no address, and are not connected to.
    log::info("no verbs: {}", listener.error().what);
    for (size_t peer = 0; peer < ranks_; ++peer)
      if (wanted_[peer]) reasons_[peer] = listener.error().what;
    wanted_.assign(ranks_, false);
    return {};
  }
  if (!listener) {
    bootstrap_.fail(listener.error());  // the others are about to wait for us
    return listener.error();
  }
  backend_.worker = *std::move(worker);
  backend_.listener = *std::move(listener);
  return {};
}

// The higher rank connects. Returns, a character per rank, to whom that was possible.
std::string Joining::connect_down(const std::vector<std::string>& addresses) {
  std::string possible(ranks_, '0');
  const auto below = std::count(wanted_.begin(), wanted_.begin() + static_cast<std::ptrdiff_t>(own_), true);
  if (backend_.worker != nullptr) backend_.worker->will_connect(static_cast<size_t>(below) * channels_);
  for (size_t peer = 0; peer < own_; ++peer) {
    bool all = wanted_[peer];
    for (size_t channel = 0; channel < channels_ && all; ++channel) {
      auto connected = backend_.worker->connect(addresses[peer], fmt::format("{} {}", own_, channel));
      const auto ready = connected ? (*connected)->ready() : Result<bool>(connected.error());
      all = static_cast<bool>(ready);  // where there is no way, that is known at once
      if (all) {
        endpoint(channel, peer) = *std::move(connected);
      } else {
        reasons_[peer] = ready.error().what;
      }
    }
    if (all) possible[peer] = '1';
  }
  return possible;
}

bool Joining::joined(size_t peer) {
  for (size_t channel = 0; channel < channels_; ++channel) {
    if (endpoint(channel, peer) == nullptr) return false;
    const auto ready = endpoint(channel, peer)->ready();
    if (!ready) reasons_[peer] = ready.error().what;
    if (!ready || !*ready) return false;
  }
  return true;
}

// Nothing more is to come: who connected to us is here, or failed, and whom we connected to is ready, or refuses.
bool Joining::settled(const std::vector<std::string>& attempts) {
  bool connected = true;
  size_t missing = 0;
  for (size_t peer = 0; peer < ranks_; ++peer) {
    if (peer == own_ || !wanted_[peer] || attempts[std::max(peer, own_)][std::min(peer, own_)] != '1') continue;
    if (peer < own_) connected = (joined(peer) || !reasons_[peer].empty()) && connected;
    for (size_t channel = 0; channel < channels_ && peer > own_; ++channel) missing += endpoint(channel, peer) == nullptr ? 1 : 0;
  }
  return connected && missing <= failed_arrivals_;
}

Status Joining::accept() {
  if (backend_.worker == nullptr) return {};
  backend_.worker->progress();
  auto accepted = backend_.listener->accept();
  if (!accepted) {
    log::warn("{}", accepted.error().what);
    ++failed_arrivals_;
  } else if (*accepted != nullptr) {
    arrivals_.push_back(*std::move(accepted));
  }
  place_arrivals();
  return {};
}

void Joining::place_arrivals() {
  for (auto& arrival : arrivals_) {
    const auto ready = arrival->ready();
    if (ready && !*ready) continue;
    size_t peer = 0;
    size_t channel = 0;
    const std::string hello(arrival->hello());
    const bool known = std::sscanf(hello.c_str(), "%zu %zu", &peer, &channel) == 2 && peer > own_ && peer < ranks_ && channel < channels_ &&
                       wanted_[peer] && endpoint(channel, peer) == nullptr;
    if (!ready) {
      log::warn("{}", ready.error().what);
      ++failed_arrivals_;
      arrival.reset();
    } else if (!known) {
      log::warn("{}: a stranger connected and was dropped; it said '{}'", backend_.device.name, hello);
      arrival.reset();
    } else {
      endpoint(channel, peer) = std::move(arrival);
    }
  }
  std::erase(arrivals_, nullptr);
}

// A pair is joined when both sides say so; meanwhile the peers may need this worker's progress.
Status Joining::keep_common() {
  nlohmann::json mine = nlohmann::json::array();  // by peer: null where joined, else why not
  for (size_t peer = 0; peer < ranks_; ++peer) {
    const bool is_joined = wanted_[peer] && peer != own_ && joined(peer);
    if (!is_joined && reasons_[peer].empty()) reasons_[peer] = "it was waited for in vain";
    mine.push_back(is_joined ? nlohmann::json() : nlohmann::json(reasons_[peer]));
  }
  auto everybody = std::async(std::launch::async, [&] { return bootstrap_.all_gather(mine.dump()); });
  while (everybody.wait_for(std::chrono::milliseconds(1)) != std::future_status::ready) {
    for (int i = 0; i < 100 && backend_.worker != nullptr; ++i) backend_.worker->progress();
  }
  const auto theirs = GYRE_TRY(everybody.get());
  for (size_t peer = 0; peer < ranks_; ++peer) {
    const auto other = nlohmann::json::parse(theirs[peer], nullptr, false);
    const bool readable = other.is_array() && other.size() == ranks_;
    if (peer == own_ || (mine[peer].is_null() && readable && other[own_].is_null())) continue;
    for (size_t channel = 0; channel < channels_; ++channel) endpoint(channel, peer).reset();
    if (mine[peer].is_null()) reasons_[peer] = fmt::format("rank {} says: {}", peer, readable ? other[own_].dump() : "nothing");
  }
  return {};
}

}  // namespace gyre::engine
