// Times a peer's calls: a checked first call, calls to warm up, then batches of about 1.5 ms (or one call) that each start at a barrier.
// Batches keep small sizes honest: calls inside one run back to back, as in nccl-tests, and one slow moment of a shared machine costs
// one batch. A batch in which some rank had to wait for a CPU is disturbed; a size's time is the median of the undisturbed batches when
// there are at least 3, else of all. With more ranks than CPUs every batch waits, so all of them count.
// Rank 0 prints JSON lines: the library's version, then one line per size.
#pragma once
#include <algorithm>
#include <cstdio>
#include <utility>
#include <vector>

#include "perf/peers/check.h"
#include "perf/peers/machine.h"
#include "perf/peers/options.h"
#include "perf/peers/peer.h"

namespace gyre::peers {

inline constexpr int exit_wrong_result = 3;

struct Batch {
  double call_us;  // the slowest rank's
  double batch_us;
  bool disturbed;
};

inline Batch run_batch(Peer& peer, const Call& call, int calls) {
  if (peer.touches()) peer.touch(call);
  peer.barrier();
  const double waited_before = waited_for_cpu_us();
  const double start = now_us();
  for (int i = 0; i < calls; ++i) peer.run(call);
  const double own_us = now_us() - start;
  const double own_waited = waited_for_cpu_us() - waited_before;
  const double batch_us = peer.maximum(own_us);
  const double waited = peer.maximum(own_waited);
  return {batch_us / calls, batch_us, waited > 0.02 * batch_us};
}

/// Warms up, by 17 calls at least (nccl-tests makes five) where these take less than a second, since libraries try what is faster in
/// their first ones; and returns how many calls make a batch. The same on all ranks, because batch times are.
inline int calls_per_batch(Peer& peer, const Call& call, double budget_ms) {
  if (peer.touches()) return 1;
  double call_us = run_batch(peer, call, 1).call_us;
  for (const auto& [calls, most_us] : {std::pair{16, 1e6 / 16}, {20, budget_ms * 1e3 / 40}, {20, budget_ms * 1e3 / 40}}) {
    if (call_us > most_us) break;
    call_us = std::min(call_us, run_batch(peer, call, calls).call_us);
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
  double hop_ns;  // before or after, the longer: the CPUs move within a run, too; 0: not known
};

inline Timing time_call(Peer& peer, const Call& call, double budget_ms) {
  const int calls = calls_per_batch(peer, call, budget_ms);
  const bool crowded = peer.size() > online_cpus();
  std::vector<double> all;
  std::vector<double> clean;
  double spent_us = 0;
  const double before_ns = peer.hop_ns();
  // Undisturbed batches are worth waiting for, up to three times the budget.
  while (all.size() < 3 || (spent_us < 3e3 * budget_ms && (spent_us < 1e3 * budget_ms || (!crowded && clean.size() < 5)))) {
    const Batch batch = run_batch(peer, call, calls);
    all.push_back(batch.call_us);
    if (!crowded && !batch.disturbed) clean.push_back(batch.call_us);
    spent_us += batch.batch_us;
  }
  const double share = static_cast<double>(clean.size()) / static_cast<double>(all.size());
  const double best = *std::min_element(all.begin(), all.end());
  const double after_ns = peer.hop_ns();
  return {median(clean.size() >= 3 ? clean : all),
          best,
          median(all),
          share,
          all.size() * static_cast<size_t>(calls),
          std::max(before_ns, after_ns)};
}

/// One size; true: its result was right.
inline bool measure_size(Peer& peer, const Call& call, size_t asked_bytes, double budget_ms) {
  peer.prepare(call);
  const double wrong = wrong_elements(peer, call);
  const Timing t = time_call(peer, call, budget_ms);
  peer.finish();
  if (peer.rank() == 0) {
    std::printf("{\"ranks\": %d, \"op\": \"%s\", \"type\": \"%s\", \"bytes\": %zu, \"us\": %.4f, \"best_us\": %.4f, ", peer.size(),
                op_names.at(static_cast<size_t>(call.op)), type_names.at(static_cast<size_t>(call.type)), asked_bytes, t.us, t.best_us);
    std::printf("\"all_us\": %.4f, \"undisturbed\": %.2f, \"calls\": %zu, \"size_hop_ns\": %.1f, \"wrong\": %.0f}\n", t.all_us,
                t.undisturbed, t.calls, t.hop_ns, wrong);
    std::fflush(stdout);
  }
  return wrong == 0;
}

/// The body of every peer's program; returns its exit status. A size of no whole element for every rank has no line, and neither has a
/// type that the library does not have.
inline int measure(Peer& peer, const Options& options) {
  if (peer.rank() == 0) std::printf("{\"version\": \"%s\"}\n", peer.version().c_str());
  if (!peer.supports(options.op, options.type)) return 0;
  const size_t most = *std::max_element(options.sizes_bytes.begin(), options.sizes_bytes.end());
  Call call{options.op, options.type, peer.size(), 0, peer.allocate(most), nullptr};
  if (call.op == Op::all_to_all) call.apart = peer.allocate(most);
  if (call.data == nullptr || (call.op == Op::all_to_all && call.apart == nullptr)) {
    std::perror("the buffer");
    return 1;
  }
  bool right = true;
  for (const size_t bytes : options.sizes_bytes) {
    call.block = bytes / call.width() / (Call::has_blocks(call.op) ? static_cast<size_t>(peer.size()) : 1);
    if (call.block != 0) right = measure_size(peer, call, bytes, options.budget_ms) && right;
  }
  return right ? 0 : exit_wrong_result;
}

}  // namespace gyre::peers
