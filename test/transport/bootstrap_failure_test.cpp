// What ranks of a job hear when one of them dies, gives up, leaves, stays away, or calls otherwise.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "test/catch.h"
#include "test/transport/bootstrap_ranks.h"
#include "transport/bootstrap_wire.h"

using namespace gyre;
using namespace gyre::transport;
using namespace gyre::test;
using std::chrono::milliseconds;
using std::chrono::seconds;

namespace {

/// A process that joins as `rank`, acts, and then only is there; runs before any thread of the test does.
pid_t fork_rank(
    const Door& door, Rank rank, int size, const std::function<void(Bootstrap&)>& act = [](Bootstrap&) {}) {
  const pid_t pid = ::fork();
  if (pid != 0) return pid;
  const auto job = Bootstrap::join(rendezvous(door, rank, size));
  if (!job || !(*job)->barrier()) ::_exit(1);
  act(**job);
  for (;;) ::pause();
}

/// Ranks 0 … size-1 without `absent`, which is a process; each does its barrier and then the body, `act` runs in between.
std::vector<Outcome> beside_process(const Door& door, int size, Rank absent, const std::function<void()>& act,
                                    const std::function<Outcome(Bootstrap&)>& body) {
  std::vector<Outcome> outcomes(static_cast<size_t>(size));
  std::vector<std::thread> threads;
  std::atomic<int> ready{0};
  std::atomic<bool> acted{false};
  for (Rank rank = 0; rank < size; ++rank) {
    if (rank == absent) continue;
    threads.emplace_back([&, rank] {
      const auto job = Bootstrap::join(rendezvous(door, rank, size));
      const Status status = job ? (*job)->barrier() : Status{job.error()};
      ++ready;
      acted.wait(false);
      outcomes[static_cast<size_t>(rank)] = status ? body(**job) : status.error().what;
    });
  }
  while (ready < size - 1) std::this_thread::yield();
  act();
  acted = true;
  acted.notify_all();
  for (std::thread& thread : threads) thread.join();
  return outcomes;
}

std::string died(Rank rank, pid_t pid) {
  return bootstrap::Process{static_cast<uint32_t>(pid), bootstrap::Process::self().host}.text(rank) + " is gone: its connection closed";
}

}  // namespace

TEST_CASE("the death of a rank is told to all others") {
  for (const Rank victim : {2, 0}) {
    const Door door = *open_door();
    const pid_t pid = fork_rank(door, victim, 4);
    const auto outcomes = beside_process(
        door, 4, victim, [&] { ::kill(pid, SIGKILL); }, failure_of);
    ::waitpid(pid, nullptr, 0);
    for (Rank rank = 0; rank < 4; ++rank)
      if (rank != victim) CHECK(outcomes[static_cast<size_t>(rank)] == died(victim, pid));
  }
}

TEST_CASE("the death of a rank is told to all others while a child of its lives") {
  for (const Rank victim : {2, 0}) {
    const Door door = *open_door();
    std::array<int, 2> ends{};
    REQUIRE(::pipe(ends.data()) == 0);
    const UniqueFd told(ends[0]), tell(ends[1]);
    const pid_t pid = fork_rank(door, victim, 4, [&](Bootstrap&) {
      const pid_t child = ::fork();
      if (child == 0) ::alarm(30), ::pause();
      if (::write(tell.get(), &child, sizeof child) != ssize_t{sizeof child}) ::_exit(1);
    });
    pid_t child = 0;
    const auto outcomes = beside_process(
        door, 4, victim,
        [&] {
          if (::read(told.get(), &child, sizeof child) == ssize_t{sizeof child}) ::kill(pid, SIGKILL);
        },
        failure_of);
    ::waitpid(pid, nullptr, 0);
    REQUIRE(child > 0);
    CHECK(::kill(child, SIGKILL) == 0);
    for (Rank rank = 0; rank < 4; ++rank)
      if (rank != victim) CHECK(outcomes[static_cast<size_t>(rank)] == died(victim, pid));
  }
}

TEST_CASE("a stopped rank is not dead, and a death is seen in the midst of an all_gather") {
  const Door door = *open_door();
  const pid_t pid = fork_rank(door, 1, 3);
  const auto outcomes = beside_process(
      door, 3, 1, [&] { ::kill(pid, SIGSTOP); },
      [&](Bootstrap& job) -> Outcome {
        if (const Error* why = job.wait_for_failure(milliseconds(1500))) return why->what;
        if (job.rank() == 2) ::kill(pid, SIGKILL);
        const auto parts = job.all_gather("x");
        return parts ? "gathered" : parts.error().what;
      });
  ::kill(pid, SIGKILL);
  ::waitpid(pid, nullptr, 0);
  CHECK(outcomes[0] == died(1, pid));
  CHECK(outcomes[2] == died(1, pid));
}

TEST_CASE("an all_gather that a rank stays away from ends where there is a limit of all, for all, and the job goes on") {
  std::atomic<int> ended{0};
  const auto outcomes = run_ranks(3, [&](Bootstrap& job) -> Outcome {
    job.limit_gathers(milliseconds(200));
    while (job.rank() == 1 && ended < 2) std::this_thread::yield();
    const auto none = job.all_gather("x");
    ++ended;
    job.limit_gathers({});
    for (int i = 0; i < 3; ++i) {
      const auto parts = job.all_gather(std::to_string(10 * i + job.rank()));
      if (!parts) return parts.error().what;
      for (int rank = 0; rank < 3; ++rank) {
        if ((*parts)[static_cast<size_t>(rank)] != std::to_string(10 * i + rank)) return "wrong parts";
      }
    }
    if (const Error* why = job.failure(); why != nullptr) return why->what;
    return none ? "gathered" : none.error().what;
  });
  for (const Outcome& outcome : outcomes) {
    INFO(outcome);
    CHECK(outcome.find(" did not come to a call of all within 0.2 s") != Outcome::npos);
  }
}

TEST_CASE("a rank that stays away is waited for by none, whatever comes of a call of all, and after it has left") {
  std::atomic<bool> ended{false};
  const auto outcomes = run_ranks(3, [&](Bootstrap& job) -> Outcome {
    if (job.rank() == 2) {
      job.stay_away("its word");
      while (!ended) std::this_thread::yield();
      const auto none = job.all_gather("x");
      return none ? "gathered" : none.error().what;
    }
    job.limit_gathers(milliseconds(200));
    while (job.rank() == 1 && !ended) std::this_thread::yield();
    if (job.all_gather("x")) return "gathered without rank 1";
    ended = true;
    job.limit_gathers({});
    while (!job.left(2)) std::this_thread::yield();
    for (int i = 0; i < 3; ++i) {
      const auto parts = job.all_gather(std::to_string(10 * i + job.rank()));
      if (!parts) return parts.error().what;
      if (*parts != std::vector<std::string>{std::to_string(10 * i), std::to_string(10 * i + 1), "its word"}) return "wrong parts";
    }
    return job.attention() ? "attention" : "";
  });
  CHECK(outcomes == std::vector<Outcome>{"", "", "rank 2 stays away from calls of all"});
}

TEST_CASE("a rank that gives up is heard by all, the first failure stays") {
  const auto outcomes = run_ranks(3, [](Bootstrap& job) -> Outcome {
    if (!job.barrier()) return "no barrier";
    if (job.rank() == 2) job.fail(Error{Code::cuda, "out of memory"});
    const Outcome outcome = failure_of(job);
    job.fail(Error{Code::internal, "later"});
    if (!job.attention() || job.failure()->what != outcome) return "changed";
    const auto after = job.all_gather("x");
    return after ? "gathered" : after.error().what;
  });
  CHECK(outcomes[0] == "rank 2 gave up: out of memory");
  CHECK(outcomes[1] == "rank 2 gave up: out of memory");
  CHECK(outcomes[2] == "out of memory");
}

TEST_CASE("why a rank gives up is heard by all also where its process ends at once") {
  const auto by_itself = [](Bootstrap& job) {
    job.fail({Code::timeout, "too late"});
    ::_exit(0);
  };
  const auto by_another_thread = [](Bootstrap& job) {
    std::thread([&] { job.fail({Code::timeout, "too late"}); }).detach();
    (void)job.wait_for_failure(seconds(20));
    ::_exit(0);
  };
  for (const Rank victim : {2, 0, 2, 0, 2, 0}) {
    for (const auto& act : {std::function<void(Bootstrap&)>(by_itself), std::function<void(Bootstrap&)>(by_another_thread)}) {
      const Door door = *open_door();
      const pid_t pid = fork_rank(door, victim, 4, act);
      const auto outcomes = beside_process(
          door, 4, victim, [] {}, failure_of);
      ::waitpid(pid, nullptr, 0);
      for (Rank rank = 0; rank < 4; ++rank)
        if (rank != victim) CHECK(outcomes[static_cast<size_t>(rank)] == "rank " + std::to_string(victim) + " gave up: too late");
    }
  }
}

TEST_CASE("why a rank gives up is heard by all also where rank 0's process ends when it hears of it") {
  constexpr int ranks = 12;
  for (int i = 0; i < 10; ++i) {
    const Door door = *open_door();
    const pid_t pid = fork_rank(door, 0, ranks, [](Bootstrap& job) {
      (void)job.wait_for_failure(seconds(20));
      ::_exit(0);
    });
    const auto outcomes = beside_process(
        door, ranks, 0, [] {},
        [](Bootstrap& job) {
          if (job.rank() == 1) job.fail({Code::timeout, "too late"});
          return failure_of(job);
        });
    ::waitpid(pid, nullptr, 0);
    for (size_t rank = 2; rank < ranks; ++rank) CHECK(outcomes[rank] == "rank 1 gave up: too late");
  }
}

TEST_CASE("a rank that leaves is no failure, except for who waits for it") {
  for (const Rank leaver : {2, 0}) {
    const auto outcomes = run_ranks(3, [leaver](Bootstrap& job) -> Outcome {
      if (!job.barrier()) return "no barrier";
      if (job.rank() == leaver) return "";
      while (!job.left(leaver)) std::this_thread::yield();
      if (job.attention()) return job.failure()->what;
      const auto parts = job.all_gather("x");
      return parts ? "gathered" : parts.error().what;
    });
    const std::string expected = "rank " + std::to_string(leaver) + " has left";
    CHECK(outcomes[leaver == 0 ? 2 : 0] == expected);
    CHECK(outcomes[1].find("has left") != std::string::npos);  // or "have", where another has left in the meantime
  }
}

TEST_CASE("every rank learns in which word calls differ") {
  const auto outcomes = run_ranks(4, [](Bootstrap& job) {
    const bool odd = job.rank() == 2;
    job.describe(7, odd ? 2 : 1, odd ? "all_reduce count=999 type=float" : "all_reduce count=1000 type=float", false);
    if (job.rank() == 3)
      while (!job.attention()) std::this_thread::yield();
    return failure_of(job);
  });
  for (const Outcome& outcome : outcomes)
    CHECK(outcome == "calls differ: rank 2 has count=999, ranks 0, 1, 3 have count=1000 (call 7: all_reduce type=float)");
}

TEST_CASE("a rank that is asked answers, one that does not is in no call") {
  const auto outcomes = run_ranks(3, [](Bootstrap& job) {
    if (job.rank() == 0) job.describe(7, 1, "all_reduce count=8", true);
    if (job.rank() == 1) {
      while (!job.asked()) std::this_thread::yield();
      job.describe(7, 2, "all_reduce count=9", false);
      if (job.asked()) return Outcome("still asked");
    }
    return failure_of(job);
  });
  for (const Outcome& outcome : outcomes)
    CHECK(outcome == "calls differ: rank 1 has count=9, rank 0 has count=8, rank 2 is in no call (call 7: all_reduce)");
}
