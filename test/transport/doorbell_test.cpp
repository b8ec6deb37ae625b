#include "transport/doorbell.h"

#include <sys/wait.h>
#include <unistd.h>

#include <thread>

#include "test/catch.h"
#include "test/slow_builds.h"
#include "test/text.h"

using namespace gyre;
using namespace gyre::transport;
using namespace std::chrono_literals;

namespace {

using Clock = std::chrono::steady_clock;

std::vector<std::unique_ptr<Doorbell>> joined_bells(int ranks, bool in_poll = false) {
  std::vector<std::unique_ptr<Doorbell>> bells;
  for (Rank rank = 0; rank < ranks; ++rank) bells.push_back(*Doorbell::create(rank, ranks, ranks - 1, in_poll));
  for (Rank rank = 0; rank < ranks; ++rank) {
    for (Rank peer = 0; peer < ranks; ++peer) {
      if (peer != rank) REQUIRE(bells[static_cast<size_t>(rank)]->open(peer, bells[static_cast<size_t>(peer)]->address()));
    }
  }
  return bells;
}

void sleep(Doorbell& bell, std::chrono::milliseconds most, bool in_poll) {
  std::vector<pollfd> nothing_else;
  in_poll ? bell.sleep(most, nothing_else) : bell.sleep(most);
}

// A wait of this length is a ring that was lost: nothing else takes so long, on a machine that is not stopped.
constexpr auto lost = 5s;
constexpr uint64_t turns = test::sanitized ? 10000 : 100000;

// Two ranks in turn, each asleep while the other one has it, but for a few looks: a different number each time, so that the news comes
// before, while and after it falls asleep. False: a ring was lost.
bool take_turns(Doorbell& bell, bool in_poll, Rank rank, std::atomic<uint64_t>& mine, std::atomic<uint64_t>& theirs) {
  for (uint64_t turn = 1; turn <= turns; ++turn) {
    if (rank == 0) {
      mine.store(turn, std::memory_order_release);
      bell.ringer(1).ring();
    }
    const auto here = [&] { return theirs.load(std::memory_order_acquire) >= turn; };
    for (uint64_t look = 0; look < turn % 64 && !here(); ++look) {
    }
    while (!here()) {
      bell.arm(turn % 2 == 0 ? -1 : 1 - rank);
      const auto begin = Clock::now();
      if (!here()) sleep(bell, lost, in_poll);
      bell.disarm();
      if (Clock::now() - begin >= lost) return false;
    }
    if (rank == 1) {
      mine.store(turn, std::memory_order_release);
      bell.ringer(0).ring();
    }
  }
  return true;
}

/// How long a rank that waits for `whom` sleeps when `rings` rings 20 ms later.
Clock::duration slept(Doorbell& bell, Rank whom, const Ringer& rings, std::chrono::milliseconds most) {
  bell.arm(whom);
  const auto begin = Clock::now();
  std::thread other([&] {
    std::this_thread::sleep_for(20ms);
    rings.ring();
  });
  bell.sleep(most);
  const auto time = Clock::now() - begin;
  other.join();
  bell.disarm();
  return time;
}

}  // namespace

TEST_CASE("a doorbell between threads loses no ring") {
  const bool in_poll = GENERATE(false, true);
  auto bells = joined_bells(2, in_poll);
  for (const Rank rank : {0, 1}) bells[static_cast<size_t>(rank)]->promise(1 - rank);
  if (!bells[0]->rung().sure) return;  // no membarrier here
  alignas(64) std::atomic<uint64_t> news[2]{};
  bool other_right = false;
  std::thread other([&] { other_right = take_turns(*bells[1], in_poll, 1, news[1], news[0]); });
  CHECK(take_turns(*bells[0], in_poll, 0, news[0], news[1]));
  other.join();
  CHECK(other_right);
}

TEST_CASE("a doorbell between processes loses no ring") {
  const bool in_poll = GENERATE(false, true);
  const auto memory = *SharedMemory::create(128);
  const auto news = [&](Rank rank) -> std::atomic<uint64_t>& { return reinterpret_cast<std::atomic<uint64_t>*>(memory->data())[8 * rank]; };
  int addresses[2][2];  // from rank, to the other
  REQUIRE((pipe(addresses[0]) == 0 && pipe(addresses[1]) == 0));
  const auto play = [&](Rank rank) {
    auto bell = *Doorbell::create(rank, 2, 1, in_poll);
    char theirs[128] = {};
    const std::string mine = bell->address();
    if (write(addresses[rank][1], mine.c_str(), mine.size() + 1) < 0 || read(addresses[1 - rank][0], theirs, sizeof theirs - 1) <= 0)
      return 1;
    if (!bell->open(1 - rank, theirs)) return 2;
    bell->promise(1 - rank);
    while (!bell->rung().by_all) std::this_thread::yield();
    if (!bell->rung().sure) return 0;  // no membarrier here
    return take_turns(*bell, in_poll, rank, news(rank), news(1 - rank)) ? 0 : 3;
  };
  const pid_t child = fork();
  if (child == 0) _exit(play(1));
  CHECK(play(0) == 0);
  int status = -1;
  waitpid(child, &status, 0);
  CHECK(status == 0);
  for (const auto& pair : addresses) close(pair[0]), close(pair[1]);
}

TEST_CASE("a rank that waits for one other is woken by that one alone") {
  auto bells = joined_bells(3);
  CHECK(slept(*bells[0], 2, bells[2]->ringer(0), 5s) < 4s);
  CHECK(slept(*bells[0], 2, bells[1]->ringer(0), 100ms) >= 100ms);
  CHECK(slept(*bells[0], -1, bells[1]->ringer(0), 5s) < 4s);
  CHECK(slept(*bells[1], 2, bells[0]->ringer(2), 100ms) >= 100ms);  // that was for another
}

TEST_CASE("a ring between falling asleep and sleeping is not lost") {
  const bool in_poll = GENERATE(false, true);
  auto bells = joined_bells(2, in_poll);
  bells[0]->arm(1);
  bells[1]->ring_all();
  const auto begin = Clock::now();
  sleep(*bells[0], 5s, in_poll);
  CHECK(Clock::now() - begin < 4s);
  bells[0]->disarm();
}

TEST_CASE("who sleeps in poll is woken by what else it waits for, and by a bell once for each ring") {
  auto bells = joined_bells(2, true);
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  std::vector<pollfd> besides{{ends[0], POLLIN, 0}};
  const auto slept = [&](std::chrono::milliseconds most) {
    const auto begin = Clock::now();
    bells[0]->arm(-1);
    bells[0]->sleep(most, besides);
    bells[0]->disarm();
    besides.resize(1);
    return Clock::now() - begin;
  };
  CHECK(slept(50ms) >= 50ms);
  bells[0]->arm(-1);
  bells[1]->ring_all();
  bells[1]->ring_all();  // it is awake
  bells[0]->disarm();
  CHECK(slept(5s) < 4s);  // of that ring
  CHECK(slept(50ms) >= 50ms);
  REQUIRE(write(ends[1], "x", 1) == 1);
  CHECK(slept(5s) < 4s);
  for (const int end : ends) close(end);
}

TEST_CASE("who rings for a peer that has ended gets no signal") {
  auto bells = joined_bells(2, true);
  bells[0]->arm(-1);
  bells[0].reset();
  bells[1]->ring_all();
}

TEST_CASE("who has no near peer sleeps for what else it waits for alone") {
  const auto bell = *Doorbell::create(0, 2, 0, true);
  CHECK(bell->rung().sure);
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  std::vector<pollfd> besides{{ends[0], POLLIN, 0}};
  bell->arm(-1);
  REQUIRE(write(ends[1], "x", 1) == 1);
  const auto begin = Clock::now();
  bell->sleep(5s, besides);
  CHECK(Clock::now() - begin < 4s);
  for (const int end : ends) close(end);
}

TEST_CASE("a bell is rung by all once all have promised") {
  auto bells = joined_bells(3);
  CHECK_FALSE(bells[0]->rung().by_all);
  bells[1]->promise(0);
  CHECK_FALSE(bells[0]->rung().by_all);
  bells[2]->promise(0);
  CHECK(bells[0]->rung().by_all);
  CHECK_FALSE(bells[1]->rung().by_all);
}

TEST_CASE("a bell that can't be opened is not rung") {
  auto bell = *Doorbell::create(0, 2, 1);
  CHECK(test::contains(bell->open(1, "1:2:3").error().what, "is not an address of shared memory"));
  const auto other = *Doorbell::create(1, 2, 1, true);
  const std::string address = other->address();
  CHECK(test::contains(bell->open(1, address.substr(0, address.find('/') + 1)).error().what, "'' is not a pipe's address"));
  CHECK(test::contains(bell->open(1, address + "0").error().what, "is not the peer's pipe"));
  bell->ringer(1).ring();
  bell->ring_all();
}
