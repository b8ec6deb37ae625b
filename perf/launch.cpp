#include "perf/launch.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <map>
#include <thread>

#include "base/unique.h"

namespace gyre::perf {
namespace {

using Clock = std::chrono::steady_clock;

// Ranks end by themselves within moments of another's death; who does not, because it was still joining or is stuck, is ended by us.
constexpr auto grace = std::chrono::milliseconds(4500);

volatile std::sig_atomic_t stop_signal = 0;
void remember_signal(int signal) { stop_signal = signal; }

// A listening socket on a free port of the loopback address.
UniqueFd listen_anywhere(uint16_t& port) {
  UniqueFd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* plain = reinterpret_cast<sockaddr*>(&address);
  if (!fd || bind(fd.get(), plain, size) != 0 || listen(fd.get(), SOMAXCONN) != 0 || getsockname(fd.get(), plain, &size) != 0) return {};
  port = ntohs(address.sin_port);
  return fd;
}

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
  transport::Rendezvous rendezvous;
  rendezvous.size = ranks;
  rendezvous.timeout = timeout;
  const UniqueFd socket = listen_anywhere(rendezvous.port);
  if (!socket) {
    fmt::print(stderr, "gyre-perf: cannot listen on 127.0.0.1: {}\n", std::strerror(errno));
    return 1;
  }
  if (getrandom(&rendezvous.job, sizeof rendezvous.job, 0) < 0) rendezvous.job = static_cast<uint64_t>(getpid());

  struct sigaction action {};
  action.sa_handler = remember_signal;  // without SA_RESTART, so that waiting ends
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
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
      rendezvous.rank = rank;
      rendezvous.listen_fd = rank == 0 ? socket.get() : -1;
      const int code = rank_main(rendezvous);
      std::fflush(stdout);
      _exit(code);
    }
    children[pid] = rank;
  }
  return reap(std::move(children));
}

}  // namespace gyre::perf
