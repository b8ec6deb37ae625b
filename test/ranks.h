// The ranks of a job as threads of this process: each makes a communicator over a rendezvous on 127.0.0.1 and runs the test's function,
// which returns what the rank has to say; the main thread asserts, since Catch2's assertions are not for several threads.
#pragma once
#include <functional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "engine/communicator.h"
#include "transport/door.h"

namespace gyre::test {

/// What each rank says, by rank.
using Words = std::vector<std::string>;
using RankConfig = std::function<Config(Rank)>;
using RankBody = std::function<std::string(engine::Communicator&)>;

/// What a rank says of itself.
inline std::string run_rank(const transport::Door& door, Rank rank, int size, const RankConfig& config, const RankBody& body) {
  transport::Rendezvous rendezvous = door.rendezvous(rank, size);
  rendezvous.job = 1;
  auto communicator = engine::Communicator::create(rendezvous, config(rank));
  return communicator ? body(**communicator) : "create: " + communicator.error().what;
}
/// Runs `body` on each rank. A rank whose communicator can't be made says "create: " and why.
inline Words run_ranks(int size, const RankConfig& config, const RankBody& body) {
  const transport::Door door = *transport::open_door();
  Words words(static_cast<size_t>(size));
  std::vector<std::thread> threads;
  for (Rank rank = 0; rank < size; ++rank)
    threads.emplace_back([&, rank] { words[static_cast<size_t>(rank)] = run_rank(door, rank, size, config, body); });
  for (std::thread& thread : threads) thread.join();
  return words;
}

/// The first rank that has something to say, and what; empty: none.
inline std::string first_wrong(const Words& words) {
  for (size_t rank = 0; rank < words.size(); ++rank) {
    if (!words[rank].empty()) return "rank " + std::to_string(rank) + ": " + words[rank];
  }
  return {};
}

/// A configuration of these settings, such as {"GYRE_TRANSPORT=shm"}.
inline Config configured(const std::vector<std::string>& settings) {
  auto config = Config::from(settings);
  if (!config) throw std::runtime_error(config.error().what);
  return *std::move(config);
}
inline RankConfig all_configured(std::vector<std::string> settings) {
  return [settings = std::move(settings)](Rank) { return configured(settings); };
}

}  // namespace gyre::test
