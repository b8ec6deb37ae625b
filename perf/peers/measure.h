// Times a peer's all-reduce: a checked first call, warm-up, then batches of about 1.5 ms (or one call) that each start at a barrier.
// Batches keep small sizes honest: calls inside one run back to back, as in nccl-tests, and one slow moment of a shared machine costs
// one batch. A batch in which some rank had to wait for a CPU is disturbed; a size's time is the median of the undisturbed batches when
// there are at least 3, else of all. With more ranks than CPUs every batch waits, so all of them count.
// Rank 0 prints JSON lines: the library's version, then one line per size.
#pragma once
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <span>
#include <vector>

#include "perf/peers/machine.h"
#include "perf/peers/options.h"
#include "perf/peers/peer.h"

namespace gyre::peers {

inline constexpr int exit_wrong_result = 3;

/// Small integers: every order of summation gives the same float.
inline float input(int rank, size_t i) { return static_cast<float>(rank + 1) + static_cast<float>(i % 7); }

/// Elements that are wrong after one call on known inputs, on the worst rank. Leaves zeros, so that in-place sums stay finite.
inline double wrong_elements(Peer& peer, std::span<float> data) {
  for (size_t i = 0; i < data.size(); ++i) data[i] = input(peer.rank(), i);
  peer.barrier();
  peer.all_reduce(data);
  const auto ranks = static_cast<float>(peer.size());
  const float ranks_sum = ranks * (ranks + 1) / 2;
  size_t wrong = 0;
  for (size_t i = 0; i < data.size(); ++i) {
    if (data[i] != ranks_sum + ranks * static_cast<float>(i % 7)) ++wrong;
  }
  std::memset(data.data(), 0, data.size_bytes());
  return peer.maximum(static_cast<double>(wrong));
}

struct Batch {
  double call_us;  // the slowest rank's
  double batch_us;
  bool disturbed;
};

inline Batch run_batch(Peer& peer, std::span<float> data, int calls) {
  peer.barrier();
  const double waited_before = waited_for_cpu_us();
  const double start = now_us();
  for (int i = 0; i < calls; ++i) peer.all_reduce(data);
  const double own_us = now_us() - start;
  const double own_waited = waited_for_cpu_us() - waited_before;
  const double batch_us = peer.maximum(own_us);
  const double waited = peer.maximum(own_waited);
  return {batch_us / calls, batch_us, waited > 0.02 * batch_us};
}

/// Warms up and returns how many calls make a batch. The same on all ranks, because batch times are.
inline int calls_per_batch(Peer& peer, std::span<float> data, double budget_ms) {
  double call_us = run_batch(peer, data, 1).call_us;
  for (int calls : {5, 20, 20}) {
    if (call_us * 40 > budget_ms * 1e3) break;
    call_us = std::min(call_us, run_batch(peer, data, calls).call_us);
  }
  return static_cast<int>(std::clamp(1500 / std::max(call_us, 0.05), 1.0, 2000.0));
}

inline double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : 0.5 * (values[half - 1] + values[half]);
}

struct Timing {
  double us;           // the size's time
  double best_us;      // of any batch
  double all_us;       // median of all batches
  double undisturbed;  // share of the batches
  size_t calls;
};

inline Timing time_all_reduce(Peer& peer, std::span<float> data, double budget_ms) {
  const int calls = calls_per_batch(peer, data, budget_ms);
  const bool crowded = peer.size() > online_cpus();
  std::vector<double> all;
  std::vector<double> clean;
  double spent_us = 0;
  // Undisturbed batches are worth waiting for, up to three times the budget.
  while (all.size() < 3 || (spent_us < 3e3 * budget_ms && (spent_us < 1e3 * budget_ms || (!crowded && clean.size() < 5)))) {
    const Batch batch = run_batch(peer, data, calls);
    all.push_back(batch.call_us);
    if (!crowded && !batch.disturbed) clean.push_back(batch.call_us);
    spent_us += batch.batch_us;
  }
  const double share = static_cast<double>(clean.size()) / static_cast<double>(all.size());
  const double best = *std::min_element(all.begin(), all.end());
  return {median(clean.size() >= 3 ? clean : all), best, median(all), share, all.size() * static_cast<size_t>(calls)};
}

/// The body of every peer's program; returns its exit status.
inline int measure(Peer& peer, const Options& options) {
  float* memory = peer.allocate(*std::max_element(options.sizes_bytes.begin(), options.sizes_bytes.end()));
  if (memory == nullptr) {
    std::perror("the buffer");
    return 1;
  }
  if (peer.rank() == 0) std::printf("{\"version\": \"%s\"}\n", peer.version().c_str());
  bool right = true;
  for (const size_t bytes : options.sizes_bytes) {
    const std::span<float> data(memory, bytes / sizeof(float));
    peer.prepare(data);
    const double wrong = wrong_elements(peer, data);
    const Timing t = time_all_reduce(peer, data, options.budget_ms);
    peer.finish();
    right = right && wrong == 0;
    if (peer.rank() != 0) continue;
    std::printf(
        "{\"ranks\": %d, \"bytes\": %zu, \"us\": %.4f, \"best_us\": %.4f, \"all_us\": %.4f, \"undisturbed\": %.2f, \"calls\": %zu, ",
        peer.size(), data.size_bytes(), t.us, t.best_us, t.all_us, t.undisturbed, t.calls);
    std::printf("\"wrong\": %.0f}\n", wrong);
    std::fflush(stdout);
  }
  return right ? 0 : exit_wrong_result;
}

}  // namespace gyre::peers
