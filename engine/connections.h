// The connections of a communicator: every pair of ranks joined on every channel by the best transport that really works for that
// pair, and those that none works for.
#pragma once
#include <memory>
#include <span>
#include <vector>

#include "base/config.h"
#include "engine/facts.h"
#include "engine/joining.h"
#include "schedule/relayed.h"
#include "transport/board.h"
#include "transport/bootstrap.h"
#include "transport/doorbell.h"
#include "transport/transport.h"

namespace gyre::engine {

struct Connections {
  std::vector<Backend> backends;
  std::vector<std::vector<transport::Fifo*>> fifos;  ///< [channel][peer]; null for this rank itself, and where nothing joins it
  std::vector<std::string> transports;               ///< [peer]: the backend's name; empty: of this rank itself, or none joins it
  schedule::RankPairs missing;                       ///< ranks that nothing joins, each pair once; the same list on all ranks
  std::vector<bool> near;                            ///< [peer]: on this rank's host, as this rank is itself
};

/// Called by all ranks. auto: shm inside a host where the peer's memory can be opened, otherwise as network.h says; or the transport named.
/// `ports`: as transport::open_worker()'s. A pair that can't be joined is left to relays, which is said; an error, with the reason, where
/// there is no way over others either.
Result<Connections> connect_ranks(transport::Bootstrap&, const Config&, const std::vector<Facts>&, std::span<const std::string> ports = {});
/// All of them; and those that go between hosts.
std::vector<transport::Worker*> workers(const Connections&);
std::vector<transport::Worker*> networks(const Connections&);
/// Called by all ranks. Whether all have found something to be so.
Result<bool> all_have(transport::Bootstrap&, bool own);
/// Called by all ranks. What peers of this host wake this rank with, and it them; null: none.
Result<std::unique_ptr<transport::Doorbell>> open_doorbell(transport::Bootstrap&, const Connections&);
/// Called by all ranks. A board for ranks that are all joined by shm; none on any of them where they are not, or one can't open it.
/// `attach`: it reaches all ranks' ordinary memory, where the kernel lets all ranks, and GYRE_ATTACH.
Result<std::unique_ptr<transport::Board>> open_board(transport::Bootstrap&, const Connections&, const Config&, size_t bounce_bytes,
                                                     bool attach);

}  // namespace gyre::engine
