#include "engine/connections.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <future>
#include <map>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/log.h"

namespace gyre::engine {
namespace {

using transport::Bootstrap;
using transport::Endpoint;
using Clock = std::chrono::steady_clock;

// One transport being joined with the peers that want it.
class Joining {
 public:
  Joining(Bootstrap& bootstrap, const Config& config, std::vector<bool> wanted)
      : bootstrap_(bootstrap),
        ranks_(static_cast<size_t>(bootstrap.size())),
        own_(static_cast<size_t>(bootstrap.rank())),
        channels_(*config.channels),
        deadline_(Clock::now() + std::chrono::seconds(*config.timeout)),
        wanted_(std::move(wanted)),
        reasons_(ranks_) {}

  Result<Backend> run(const transport::Device& device, const transport::Slots& slots) {
    backend_.device = device;
    backend_.endpoints.resize(ranks_ * channels_);
    if (std::find(wanted_.begin(), wanted_.end(), true) != wanted_.end()) {
      GYRE_TRY(open(device, slots));
    }
    const auto addresses = GYRE_TRY(bootstrap_.all_gather(backend_.listener ? backend_.listener->address() : ""));
    const auto attempts = GYRE_TRY(bootstrap_.all_gather(connect_down(addresses)));
    while (!settled(attempts) && Clock::now() < deadline_) {
      GYRE_TRY(accept());
      if (const Error* failure = bootstrap_.failure()) return *failure;
      std::this_thread::yield();
    }
    GYRE_TRY(keep_common());
    return std::move(backend_);
  }
  const std::string& reason(size_t peer) const { return reasons_[peer]; }

 private:
  Status open(const transport::Device& device, const transport::Slots& slots) {
    auto worker = open_worker(device, slots);
    auto listener = worker ? (*worker)->listen() : Result<std::unique_ptr<transport::Listener>>(worker.error());
    if (!listener) {
      bootstrap_.fail(listener.error());  // the others are about to wait for us
      return listener.error();
    }
    backend_.worker = *std::move(worker);
    backend_.listener = *std::move(listener);
    return {};
  }
  bool joined(size_t peer) {
    for (size_t channel = 0; channel < channels_; ++channel) {
      const auto& endpoint = backend_.endpoints[channel * ranks_ + peer];
      if (endpoint == nullptr) return false;
      const auto ready = endpoint->ready();
      if (!ready) reasons_[peer] = ready.error().what;
      if (!ready || !*ready) return false;
    }
    return true;
  }
  // The higher rank connects. Returns, a character per rank, to whom that was possible.
  std::string connect_down(const std::vector<std::string>& addresses) {
    std::string possible(ranks_, '0');
    for (size_t peer = 0; peer < own_; ++peer) {
      bool all = wanted_[peer];
      for (size_t channel = 0; channel < channels_ && all; ++channel) {
        auto endpoint = backend_.worker->connect(addresses[peer], fmt::format("{} {}", own_, channel));
        all = static_cast<bool>(endpoint);
        if (all) {
          backend_.endpoints[channel * ranks_ + peer] = *std::move(endpoint);
        } else {
          reasons_[peer] = endpoint.error().what;
        }
      }
      if (all) possible[peer] = '1';
    }
    return possible;
  }
  bool settled(const std::vector<std::string>& attempts) {
    bool all = true;
    for (size_t peer = 0; peer < ranks_; ++peer) {
      if (peer == own_ || !wanted_[peer] || !reasons_[peer].empty()) continue;
      if (attempts[std::max(peer, own_)][std::min(peer, own_)] == '1') all = joined(peer) && all;
    }
    return all;
  }
  Status accept() {
    if (backend_.worker == nullptr) return {};
    backend_.worker->progress();
    auto accepted = backend_.listener->accept();
    if (!accepted) {
      log::warn("{}", accepted.error().what);  // who that was is not known; the pair will not be ready
    } else if (*accepted != nullptr) {
      arrivals_.push_back(*std::move(accepted));
    }
    for (auto& endpoint : arrivals_) {
      const auto ready = endpoint->ready();
      if (!ready || !*ready) continue;
      size_t peer = 0;
      size_t channel = 0;
      const std::string hello(endpoint->hello());
      const bool known = std::sscanf(hello.c_str(), "%zu %zu", &peer, &channel) == 2 && peer > own_ && peer < ranks_ &&
                         channel < channels_ && wanted_[peer] && backend_.endpoints[channel * ranks_ + peer] == nullptr;
      if (!known) return Error{Code::remote, fmt::format("{}: a stranger connected and said '{}'", backend_.device.name, hello)};
      backend_.endpoints[channel * ranks_ + peer] = std::move(endpoint);
    }
    std::erase(arrivals_, nullptr);
    return {};
  }
  // A pair is joined when both sides say so; meanwhile the peers may need this worker's progress.
  Status keep_common() {
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
      const bool theirs_joined = other.is_array() && other.size() == ranks_ && other[own_].is_null();
      if (peer == own_ || (mine[peer].is_null() && theirs_joined)) continue;
      for (size_t channel = 0; channel < channels_; ++channel) backend_.endpoints[channel * ranks_ + peer].reset();
      if (mine[peer].is_null()) reasons_[peer] = fmt::format("rank {} says: {}", peer, theirs_joined ? "" : other[own_].dump());
    }
    return {};
  }

  Bootstrap& bootstrap_;
  size_t ranks_;
  size_t own_;
  size_t channels_;
  Clock::time_point deadline_;
  std::vector<bool> wanted_;
  std::vector<std::string> reasons_;  // why a peer can't be joined
  Backend backend_;
  std::vector<std::unique_ptr<Endpoint>> arrivals_;
};

// What any rank can open, in one order on all ranks: they join one after the other, all together.
std::vector<transport::Device> known_devices(const std::vector<Facts>& facts) {
  std::vector<transport::Device> known;
  for (const std::string_view backend : {"shm", "ucx", "loopback"}) {
    const bool any = std::any_of(facts.begin(), facts.end(), [&](const Facts& f) {
      return std::find(f.backends.begin(), f.backends.end(), backend) != f.backends.end();
    });
    if (any) known.push_back({std::string(backend), std::string(backend), backend == "ucx"});
  }
  return known;
}

// Why two ranks cannot even try; empty: they can.
std::string obstacle(const transport::Device& device, const std::vector<Facts>& facts, size_t own, size_t peer) {
  for (const size_t rank : {own, peer}) {
    const auto& backends = facts[rank].backends;
    if (std::find(backends.begin(), backends.end(), device.backend) != backends.end()) continue;
    return rank == own ? transport::why_not(device.backend) : fmt::format("rank {} cannot use {}", rank, device.backend);
  }
  if (!device.between_hosts && facts[own].host != facts[peer].host) return fmt::format("{} does not reach another host", device.name);
  return {};
}

void say(size_t own, const std::vector<std::string>& transports) {
  std::map<std::string, std::vector<size_t>> peers;
  for (size_t peer = 0; peer < transports.size(); ++peer) {
    if (peer != own) peers[transports[peer]].push_back(peer);
  }
  for (const auto& [name, list] : peers) log::info("{} to rank {}", name, fmt::join(list, ", "));
}

}  // namespace

Result<Connections> connect_ranks(Bootstrap& bootstrap, const Config& config, const std::vector<Facts>& facts) {
  const auto own = static_cast<size_t>(bootstrap.rank());
  const size_t ranks = facts.size();
  const transport::Slots slots{static_cast<uint32_t>(*config.slots), *config.slot_bytes};
  Connections connections;
  connections.fifos.assign(*config.channels, std::vector<transport::Fifo*>(ranks));
  connections.transports.resize(ranks);
  std::vector<std::string> reasons(ranks);

  for (const transport::Device& device : known_devices(facts)) {
    const bool named = *config.transport == device.backend;
    if (!named && (*config.transport != "auto" || device.backend == "loopback")) continue;
    std::vector<bool> wanted(ranks);
    for (size_t peer = 0; peer < ranks; ++peer) {
      if (peer == own || !connections.transports[peer].empty()) continue;
      reasons[peer] = obstacle(device, facts, own, peer);
      wanted[peer] = reasons[peer].empty();
    }
    Joining joining(bootstrap, config, wanted);
    Backend backend = GYRE_TRY(joining.run(device, slots));
    for (size_t peer = 0; peer < ranks; ++peer) {
      if (!wanted[peer]) continue;
      if (backend.endpoints[peer] == nullptr) {
        reasons[peer] = joining.reason(peer);
        log::info("no {} to rank {}: {}", device.name, peer, reasons[peer]);
        continue;
      }
      connections.transports[peer] = device.name;
      for (size_t channel = 0; channel < *config.channels; ++channel) {
        connections.fifos[channel][peer] = &backend.endpoints[channel * ranks + peer]->fifo();
      }
    }
    connections.backends.push_back(std::move(backend));
  }
  for (size_t peer = 0; peer < ranks; ++peer) {
    if (peer == own || !connections.transports[peer].empty()) continue;
    const std::string reason =
        reasons[peer].empty() ? transport::why_not(*config.transport == "auto" ? "ucx" : *config.transport) : reasons[peer];
    const Error error{Code::remote,
                      fmt::format("rank {} cannot be joined with rank {} (transport {}): {}", own, peer, *config.transport, reason)};
    bootstrap.fail(error);
    return error;
  }
  say(own, connections.transports);
  return connections;
}

}  // namespace gyre::engine
