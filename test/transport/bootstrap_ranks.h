// Ranks of a job that are threads of a test, as the bootstrap's tests have them.
#pragma once
#include <algorithm>
#include <chrono>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "transport/bootstrap.h"
#include "transport/door.h"

namespace gyre::test {

inline transport::Rendezvous rendezvous(const transport::Door& door, Rank rank, int size) {
  transport::Rendezvous r = door.rendezvous(rank, size);
  r.job = 42;
  r.timeout = std::chrono::seconds(20);
  return r;
}

using Outcome = std::string;  // what a rank has to say to the main thread, which asserts; "" when all is well

/// Runs `body` on each rank of a job of threads.
inline std::vector<Outcome> run_ranks(int size, const std::function<Outcome(transport::Bootstrap&)>& body) {
  const transport::Door door = *transport::open_door();
  std::vector<Outcome> outcomes(static_cast<size_t>(size));
  std::vector<std::thread> threads;
  for (Rank rank = 0; rank < size; ++rank)
    threads.emplace_back([&, rank] {
      auto job = transport::Bootstrap::join(rendezvous(door, rank, size));
      outcomes[static_cast<size_t>(rank)] = job ? body(**job) : job.error().what;
    });
  for (std::thread& thread : threads) thread.join();
  return outcomes;
}

inline Outcome failure_of(transport::Bootstrap& job) {
  const Error* why = job.wait_for_failure(std::chrono::seconds(20));
  return why != nullptr ? why->what : "no failure";
}

inline Outcome gathered(transport::Bootstrap& job, const std::function<std::string(Rank)>& part) {
  const auto all = job.all_gather(part(job.rank()));
  if (!all) return all.error().what;
  for (Rank rank = 0; rank < job.size(); ++rank)
    if ((*all)[static_cast<size_t>(rank)] != part(rank)) return "wrong part of rank " + std::to_string(rank);
  return "";
}

inline bool all_well(const std::vector<Outcome>& outcomes) {
  return std::all_of(outcomes.begin(), outcomes.end(), [](const Outcome& o) { return o.empty(); });
}

}  // namespace gyre::test
