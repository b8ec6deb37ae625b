#include "perf/launch.h"

#include <fmt/format.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <map>
#include <thread>

#include "perf/commands.h"
#include "transport/door.h"

namespace gyre::perf {
namespace {

using Clock = std::chrono::steady_clock;

// Ranks end by themselves within moments of another's death; who does not, because it was still joining or is stuck, is ended by us.
constexpr auto grace = std::chrono::milliseconds(4500);

volatile std::sig_atomic_t stop_signal = 0;
void note_stop(int signal) { stop_signal = signal; }

// Binds this process to the rank-th of its processors, where there is one for every rank.
void bind_processor(Rank rank, int ranks) {
  cpu_set_t all;
  CPU_ZERO(&all);
  if (sched_getaffinity(0, sizeof all, &all) != 0 || CPU_COUNT(&all) < ranks) return;
  for (size_t cpu = 0, seen = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &all) || seen++ != static_cast<size_t>(rank)) continue;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    sched_setaffinity(0, sizeof one, &one);  // without it, it runs all the same
    return;
  }
}

// Waits for all; after the first failure only for as long as ranks may take to notice.
int reap(std::map<pid_t, Rank> children) {
  int result = 0;
  Clock::time_point deadline = Clock::time_point::max();
  while (!children.empty()) {
    if (stop_signal != 0 && deadline == Clock::time_point::max()) {
      for (const auto& [child, rank] : children) kill(child, SIGTERM);
      result = 128 + stop_signal;
      deadline = Clock::now() + grace;
    }
    int status = 0;
    const pid_t pid = waitpid(-1, &status, WNOHANG);  // a signal to us may come at any time, so nothing here blocks
    const auto found = children.find(pid);
    if (found != children.end()) {
      const int code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
      if (WIFSIGNALED(status)) {
        fmt::print(stderr, "gyre-perf: rank {} (process {}) was killed by signal {} ({})\n", found->second, pid, WTERMSIG(status),
                   strsignal(WTERMSIG(status)));
      }
      if (code != 0 && result == 0) {
        result = code;
        deadline = Clock::now() + grace;
      }
      children.erase(found);
      continue;
    }
    if (Clock::now() > deadline) {
      for (const auto& [child, rank] : children) {
        fmt::print(stderr, "gyre-perf: rank {} (process {}) did not end by itself: killed\n", rank, child);
        kill(child, SIGKILL);
      }
      deadline = Clock::time_point::max() - std::chrono::seconds(1);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return result;
}

}  // namespace

int run_local_ranks(int ranks, std::chrono::milliseconds timeout, const RankMain& rank_main) {
  const auto door = transport::open_door();
  if (!door) {
    fmt::print(stderr, "gyre-perf: {}\n", door.error().what);
    return 1;
  }
  uint64_t job = 0;
  if (getrandom(&job, sizeof job, 0) < 0) job = static_cast<uint64_t>(getpid());

  struct sigaction action {
  }, at_interrupt{}, at_end{};
  action.sa_handler = note_stop;  // without SA_RESTART, so that waiting ends
  sigaction(SIGINT, &action, &at_interrupt);
  sigaction(SIGTERM, &action, &at_end);
  const pid_t parent = getpid();
  std::map<pid_t, Rank> children;
  for (Rank rank = 0; rank < ranks; ++rank) {
    const pid_t pid = fork();
    if (pid < 0) {
      fmt::print(stderr, "gyre-perf: cannot start rank {}: {}\n", rank, std::strerror(errno));
      for (const auto& [child, _] : children) kill(child, SIGKILL);
      return 1;
    }
    if (pid == 0) {
      signal(SIGINT, SIG_IGN);  // a terminal's ^C reaches the whole group; the parent passes it on once
      signal(SIGTERM, SIG_DFL);
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      if (getppid() != parent) _exit(1);
      bind_processor(rank, ranks);
      transport::Rendezvous rendezvous = door->rendezvous(rank, ranks);
      rendezvous.job = job;
      rendezvous.timeout = timeout;
      _exit(printed(rank_main(rendezvous)));
    }
    children[pid] = rank;
  }
  const int code = reap(std::move(children));
  sigaction(SIGINT, &at_interrupt, nullptr);  // what is done next ends as usual
  sigaction(SIGTERM, &at_end, nullptr);
  return code;
}

}  // namespace gyre::perf
