#include "engine/connections.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/log.h"
#include "engine/choice.h"
#include "engine/network.h"
#include "transport/bootstrap_wire.h"

namespace gyre::engine {
namespace {

using transport::Bootstrap;

// What any rank can open, in one order on all ranks: they join one after the other, all together.
std::vector<transport::Device> known_devices(const std::vector<Facts>& facts) {
  std::vector<transport::Device> known;
  for (const std::string_view backend : transport_order) {
    const bool any = std::any_of(facts.begin(), facts.end(), [&](const Facts& f) {
      return std::find(f.backends.begin(), f.backends.end(), backend) != f.backends.end();
    });
    if (any) known.push_back({std::string(backend), std::string(backend), backend != "shm" && backend != "loopback"});
  }
  return known;
}

// Why two ranks cannot even try; empty: they can.
std::string obstacle(const transport::Device& device, const std::vector<Facts>& facts, size_t own, size_t peer) {
  for (const size_t rank : {own, peer}) {
    const auto& backends = facts[rank].backends;
    if (std::find(backends.begin(), backends.end(), device.backend) != backends.end()) continue;
    return rank == own ? transport::why_not(device.backend, facts[own].transport)
                       : fmt::format("rank {} cannot use {}", rank, device.backend);
  }
  if (!device.between_hosts && facts[own].host != facts[peer].host) return fmt::format("{} does not reach another host", device.name);
  return {};
}

// Each tells all whom it is not joined with.
Result<schedule::RankPairs> agree_missing(Bootstrap& bootstrap, const std::vector<std::string>& transports) {
  const auto ranks = static_cast<Rank>(transports.size());
  std::string mine;
  for (Rank peer = 0; peer < ranks; ++peer) {
    if (peer != bootstrap.rank() && transports[static_cast<size_t>(peer)].empty()) transport::bootstrap::put(mine, peer);
  }
  std::set<std::pair<Rank, Rank>> pairs;
  Rank rank = 0;
  for (const std::string& theirs : GYRE_TRY(bootstrap.all_gather(mine))) {
    std::string_view rest = theirs;
    for (auto peer = transport::bootstrap::take<Rank>(rest); peer; peer = transport::bootstrap::take<Rank>(rest)) {
      if (*peer >= 0 && *peer < ranks && *peer != rank) pairs.insert(std::minmax(rank, *peer));
    }
    ++rank;
  }
  return schedule::RankPairs(pairs.begin(), pairs.end());
}

void say(size_t own, const std::vector<std::string>& transports) {
  std::map<std::string, std::vector<size_t>> peers;
  for (size_t peer = 0; peer < transports.size(); ++peer) {
    if (peer != own && !transports[peer].empty()) peers[transports[peer]].push_back(peer);
  }
  for (const auto& [name, list] : peers) log::info("{} to rank {}", name, fmt::join(list, ", "));
}

}  // namespace

Result<Connections> connect_ranks(Bootstrap& bootstrap, const Config& config, const std::vector<Facts>& facts,
                                  std::span<const std::string> ports) {
  const auto own = static_cast<size_t>(bootstrap.rank());
  const size_t ranks = facts.size();
  const transport::Slots slots{static_cast<uint32_t>(*config.slots), *config.slot_bytes};
  Connections connections;
  connections.fifos.assign(connected_channels(config), std::vector<transport::Fifo*>(ranks));
  connections.transports.resize(ranks);
  for (const Facts& theirs : facts) connections.near.push_back(theirs.host == facts[own].host);
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
    Joining joining(bootstrap, config, wanted, ports);
    Backend backend = GYRE_TRY(joining.run(device, slots));
    for (size_t peer = 0; peer < ranks; ++peer) {
      if (!wanted[peer]) continue;
      if (backend.endpoints[peer] == nullptr) {
        reasons[peer] = joining.reason(peer);
        log::info("no {} to rank {}: {}", device.name, peer, reasons[peer]);
        continue;
      }
      connections.transports[peer] = device.name;
      for (size_t channel = 0; channel < connections.fifos.size(); ++channel) {
        connections.fifos[channel][peer] = &backend.endpoints[channel * ranks + peer]->fifo();
      }
    }
    connections.backends.push_back(std::move(backend));
  }
  connections.missing = GYRE_TRY(agree_missing(bootstrap, connections.transports));
  const bool reach_all = schedule::connected(static_cast<int>(ranks), connections.missing);
  for (size_t peer = 0; peer < ranks; ++peer) {
    if (peer == own || !connections.transports[peer].empty()) continue;
    const std::string reason = reasons[peer].empty()
                                   ? transport::why_not(*config.transport == "auto" ? "tcp" : *config.transport, *config.transport)
                                   : reasons[peer];
    const Error error{Code::remote,
                      fmt::format("rank {} cannot be joined with rank {} (transport {}): {}", own, peer, *config.transport, reason)};
    if (reach_all) {
      const auto others = std::count(connections.transports.begin(), connections.transports.end(), "") - 2;
      const std::string more = others > 0 ? fmt::format(", and not with {} more", others) : "";
      log::warn("{}{}; in collectives others pass on what they send each other", error.what, more);
      break;  // info has said it of each
    }
    bootstrap.fail(error);
    return error;
  }
  say(own, connections.transports);
  return connections;
}

namespace {

// Of ranks that reach each other's memory.
bool rings(const std::string& transport) { return transport == "shm" || transport == "loopback"; }

// Where one's bell can't be opened it is not rung, and looks by itself.
void ring_peer(transport::Doorbell& doorbell, const Connections& connections, Rank peer, const std::string& address) {
  if (!rings(connections.transports[static_cast<size_t>(peer)]) || address.empty()) return;
  if (const Status opened = doorbell.open(peer, address); !opened) {
    log::info("rank {} is not woken: {}", peer, opened.error().what);
    return;
  }
  bool all = true;
  for (const auto& channel : connections.fifos) all = channel[static_cast<size_t>(peer)]->rings(doorbell.ringer(peer)) && all;
  if (all) doorbell.promise(peer);
}

}  // namespace

std::vector<transport::Worker*> workers(const Connections& connections) {
  std::vector<transport::Worker*> all;
  for (const Backend& backend : connections.backends) {
    if (backend.worker != nullptr) all.push_back(backend.worker.get());
  }
  return all;
}

std::vector<transport::Worker*> networks(const Connections& connections) {
  std::vector<transport::Worker*> all;
  for (const Backend& backend : connections.backends) {
    if (backend.worker != nullptr && backend.device.between_hosts) all.push_back(backend.worker.get());
  }
  return all;
}

Result<std::unique_ptr<transport::Doorbell>> open_doorbell(Bootstrap& bootstrap, const Connections& connections) {
  const auto near = std::count_if(connections.transports.begin(), connections.transports.end(), rings);
  auto created = transport::Doorbell::create(bootstrap.rank(), bootstrap.size(), static_cast<int>(near), !networks(connections).empty());
  if (!created) log::info("no doorbell: {}", created.error().what);
  const auto addresses = GYRE_TRY(bootstrap.all_gather(created ? (*created)->address() : ""));
  if (!created) return std::unique_ptr<transport::Doorbell>();
  for (Rank peer = 0; peer < bootstrap.size(); ++peer) {
    if (peer != bootstrap.rank()) ring_peer(**created, connections, peer, addresses[static_cast<size_t>(peer)]);
  }
  return *std::move(created);
}

Result<bool> all_have(Bootstrap& bootstrap, bool own) {
  const auto all = GYRE_TRY(bootstrap.all_gather(own ? "1" : "0"));
  return std::find(all.begin(), all.end(), "0") == all.end();
}

namespace {

Status open_boards(transport::Board& board, Rank own, const std::vector<std::string>& addresses) {
  for (Rank peer = 0; peer < static_cast<Rank>(addresses.size()); ++peer) {
    if (peer != own) GYRE_TRY(board.open(peer, addresses[static_cast<size_t>(peer)]));
  }
  return {};
}

// All ranks' processes, where each can reach all.
Result<std::vector<transport::Attached>> attached(Bootstrap& bootstrap, bool wanted) {
  std::string own;
  if (wanted) transport::bootstrap::put(own, transport::ProcessAddress::self());
  const auto addresses = GYRE_TRY(bootstrap.all_gather(own));
  std::vector<transport::Attached> all;
  for (Rank peer = 0; wanted && peer < bootstrap.size(); ++peer) {
    std::string_view rest = addresses[static_cast<size_t>(peer)];
    const auto address = transport::bootstrap::take<transport::ProcessAddress>(rest);
    if (!address) break;  // it does not want to
    const auto process = transport::Attached::open(*address);
    if (!process) log::info("rank {}'s memory is not attached to: {}", peer, process.error().what);
    if (!process) break;
    all.push_back(*process);
  }
  if (!GYRE_TRY(all_have(bootstrap, all.size() == addresses.size()))) all.clear();
  return all;
}

}  // namespace

Result<std::unique_ptr<transport::Board>> open_board(Bootstrap& bootstrap, const Connections& connections, const Config& config,
                                                     size_t bounce_bytes, bool attach) {
  const auto& transports = connections.transports;
  const Rank own = bootstrap.rank();
  const auto ranks = static_cast<Rank>(transports.size());
  bool shared = ranks > 1;
  for (Rank peer = 0; peer < ranks; ++peer) shared = shared && (peer == own || transports[static_cast<size_t>(peer)] == "shm");
  std::unique_ptr<transport::Board> board;
  if (shared) {
    auto created = transport::Board::create(own, ranks, bounce_bytes);
    if (!created) log::warn("no board: {}", created.error().what);
    if (created) board = *std::move(created);
  }
  const auto boards = GYRE_TRY(bootstrap.all_gather(board != nullptr ? board->address() : ""));
  if (std::any_of(boards.begin(), boards.end(), [](const std::string& a) { return a.empty(); })) return std::unique_ptr<transport::Board>();
  const Status opened = open_boards(*board, own, boards);
  if (!opened) log::warn("no board: {}", opened.error().what);
  if (!GYRE_TRY(all_have(bootstrap, static_cast<bool>(opened)))) return std::unique_ptr<transport::Board>();
  if (attach) board->attach(GYRE_TRY(attached(bootstrap, *config.attach != 0)));
  return board;
}

}  // namespace gyre::engine
