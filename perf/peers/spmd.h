// Starts ranks by fork, for libraries without a launcher, with one shared page per job for a barrier and a maximum.
// The page serves the measurement only; a library under measurement never sees it.
#pragma once
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <new>
#include <vector>

#include "perf/peers/machine.h"
#include "perf/peers/measure.h"

namespace gyre::peers {

inline constexpr int max_forked_ranks = 256;

/// In memory that all ranks share; zeros are its initial state.
struct Meeting {
  alignas(64) std::atomic<uint32_t> arrived;
  alignas(64) std::atomic<uint32_t> round;
  struct alignas(64) Value {
    double value;
  } values[max_forked_ranks];
  struct alignas(64) Flag {
    std::atomic<uint64_t> value;
  } flags[2];
};

/// One rank's view of the job.
struct Member {
  int rank;
  int size;
  Meeting* meeting;

  void barrier() const {
    const uint32_t round = meeting->round.load(std::memory_order_acquire);
    if (meeting->arrived.fetch_add(1, std::memory_order_acq_rel) + 1 == static_cast<uint32_t>(size)) {
      meeting->arrived.store(0, std::memory_order_relaxed);
      meeting->round.store(round + 1, std::memory_order_release);
      return;
    }
    // Ranks may outnumber the CPUs: after a short while let the one run that is waited for.
    for (int polls = 0; meeting->round.load(std::memory_order_acquire) == round; ++polls) {
      if (polls > 200) sched_yield();
    }
  }

  /// Of 2 ranks (0: there are more), what a flag takes from one CPU to the other while they are where they are now: half of a round trip,
  /// of 20 batches the best.
  double hop_ns() const {
    if (size != 2) return 0;
    double best_us = 1e9;
    for (int batch = 0; batch < 20; ++batch) {
      const double start = now_us();
      for (int i = 0; i < 200; ++i) meet();
      best_us = std::min(best_us, (now_us() - start) / 200);
    }
    return 1e3 * best_us;
  }

  /// Of 2 ranks.
  void meet() const {
    const uint64_t met = meeting->flags[rank].value.load(std::memory_order_relaxed) + 1;
    meeting->flags[rank].value.store(met, std::memory_order_release);
    for (int polls = 0; meeting->flags[1 - rank].value.load(std::memory_order_acquire) < met; ++polls) {
      if (polls > 20000) sched_yield();
    }
  }

  double maximum(double value) const {
    meeting->values[rank].value = value;
    barrier();
    double largest = value;
    for (int r = 0; r < size; ++r) largest = std::max(largest, meeting->values[r].value);
    barrier();
    return largest;
  }
};

/// Waits for the children; returns the largest exit status. A rank that died ends the others, which would wait for it for ever.
inline int wait_for_ranks(const std::vector<pid_t>& children) {
  int worst = 0;
  for (size_t left = children.size(); left > 0; --left) {
    int state = 0;
    const pid_t ended = wait(&state);
    const int status = WIFEXITED(state) ? WEXITSTATUS(state) : 128 + WTERMSIG(state);
    worst = std::max(worst, status);
    if (status == 0 || status == exit_wrong_result) continue;
    for (const pid_t child : children) {
      if (child != ended) kill(child, SIGKILL);
    }
  }
  return worst;
}

/// Runs `body(Member)` in `ranks` children, whose exit status is what it returns; returns the largest of them.
template <class Body>
int run_ranks(int ranks, bool bind, Body body) {
  void* page = mmap(nullptr, sizeof(Meeting), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) {
    std::perror("mmap of the shared page");
    return 1;
  }
  auto* meeting = new (page) Meeting{};
  std::vector<pid_t> children;
  for (int rank = 0; rank < ranks; ++rank) {
    const pid_t child = fork();
    if (child < 0) {
      std::perror("fork");
      for (const pid_t other : children) kill(other, SIGKILL);
      wait_for_ranks(children);
      return 1;
    }
    if (child == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);  // no rank outlives a launcher that was killed
      if (bind) stay_on_cpu(rank);
      const int status = body(Member{rank, ranks, meeting});
      std::fflush(stdout);
      _exit(status);  // no destructors of the parent's objects
    }
    children.push_back(child);
  }
  return wait_for_ranks(children);
}

}  // namespace gyre::peers
