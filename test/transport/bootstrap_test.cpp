#include "transport/bootstrap.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <functional>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "base/unique.h"
#include "test/catch.h"
#include "transport/bootstrap_wire.h"
#include "transport/door.h"

using namespace gyre;
using namespace gyre::transport;
using std::chrono::milliseconds;
using std::chrono::seconds;

namespace {

using Job = std::unique_ptr<Bootstrap>;

UniqueFd connect_to(uint16_t port) {
  UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(port);
  if (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) throw std::runtime_error("cannot connect");
  return fd;
}

void say(const UniqueFd& fd, std::string_view bytes) {
  if (::send(fd.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL) < 0) throw std::runtime_error("cannot send");
}

Rendezvous rendezvous(const Door& door, Rank rank, int size) {
  Rendezvous r = door.rendezvous(rank, size);
  r.job = 42;
  r.timeout = seconds(20);
  return r;
}

using Outcome = std::string;  // what a rank has to say to the main thread, which asserts; "" when all is well

/// Runs `body` on each rank of a job of threads.
std::vector<Outcome> run_ranks(int size, const std::function<Outcome(Bootstrap&)>& body) {
  const Door door = *open_door();
  std::vector<Outcome> outcomes(static_cast<size_t>(size));
  std::vector<std::thread> threads;
  for (Rank rank = 0; rank < size; ++rank)
    threads.emplace_back([&, rank] {
      auto job = Bootstrap::join(rendezvous(door, rank, size));
      outcomes[static_cast<size_t>(rank)] = job ? body(**job) : job.error().what;
    });
  for (std::thread& thread : threads) thread.join();
  return outcomes;
}

Outcome failure_of(Bootstrap& job) {
  const Error* why = job.wait_for_failure(seconds(20));
  return why != nullptr ? why->what : "no failure";
}

Outcome gathered(Bootstrap& job, const std::function<std::string(Rank)>& part) {
  const auto all = job.all_gather(part(job.rank()));
  if (!all) return all.error().what;
  for (Rank rank = 0; rank < job.size(); ++rank)
    if ((*all)[static_cast<size_t>(rank)] != part(rank)) return "wrong part of rank " + std::to_string(rank);
  return "";
}

bool all_well(const std::vector<Outcome>& outcomes) {
  return std::all_of(outcomes.begin(), outcomes.end(), [](const Outcome& o) { return o.empty(); });
}

size_t open_descriptors() {
  size_t count = 0;
  const Unique<DIR, ::closedir> directory(::opendir("/proc/self/fd"));
  while (::readdir(directory.get()) != nullptr) ++count;
  return count;
}

}  // namespace

TEST_CASE("every rank gets every rank's bytes") {
  const size_t before = open_descriptors();
  for (const int size : {1, 2, 5, 33}) {
    const auto outcomes = run_ranks(size, [](Bootstrap& job) -> Outcome {
      for (int round = 0; round < 3; ++round) {
        const auto part = [&](Rank rank) { return std::string(static_cast<size_t>(rank * round), static_cast<char>('a' + rank % 26)); };
        if (const Outcome outcome = gathered(job, part); !outcome.empty()) return outcome;
      }
      if (const Status status = job.barrier(); !status) return status.error().what;
      return job.attention() ? "attention" : "";
    });
    INFO("size " << size << ", rank 0: " << outcomes[0]);
    CHECK(all_well(outcomes));
  }
  CHECK(open_descriptors() == before);
}

TEST_CASE("parts of a megabyte arrive though every rank leaves at once") {
  const auto outcomes =
      run_ranks(5, [](Bootstrap& job) { return gathered(job, [](Rank r) { return std::string(1 << 20, static_cast<char>('a' + r)); }); });
  INFO(outcomes[1]);
  CHECK(all_well(outcomes));
}

TEST_CASE("a part that is too large is refused") {
  const auto outcomes =
      run_ranks(1, [](Bootstrap& job) { return job.all_gather(std::string(max_gather_bytes + 1, 'x')) ? "accepted" : ""; });
  CHECK(all_well(outcomes));
}

TEST_CASE("strangers neither delay the ranks nor take a place") {
  const Door door = *open_door();
  std::vector<UniqueFd> strangers;
  const auto stranger = [&](std::string_view bytes) { say(strangers.emplace_back(connect_to(door.port)), bytes); };
  const auto hello = [&](uint64_t job_id, Rank rank, int size) {
    bootstrap::Hello h;
    h.job = job_id;
    h.rank = rank;
    h.size = size;
    h.nonce = 7;
    return std::string(reinterpret_cast<const char*>(&h), sizeof h);
  };
  for (int i = 0; i < 20; ++i) stranger("");
  stranger("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
  stranger(std::string(100000, '\xff'));
  stranger("gyrejoin");  // half a hello
  stranger(hello(41, 1, 3));
  stranger(hello(42, 1, 4));
  stranger(hello(42, 0, 3));
  stranger(hello(42, 3, 3));
  stranger(hello(42, -1, 3));
  std::vector<Outcome> outcomes(3);
  std::vector<std::thread> ranks;
  for (Rank rank = 0; rank < 3; ++rank)
    ranks.emplace_back([&, rank] {
      const auto job = Bootstrap::join(rendezvous(door, rank, 3));
      outcomes[static_cast<size_t>(rank)] = job ? gathered(**job, [](Rank r) { return std::to_string(r); }) : job.error().what;
    });
  for (std::thread& thread : ranks) thread.join();
  INFO(outcomes[0] << " | " << outcomes[1] << " | " << outcomes[2]);
  CHECK(all_well(outcomes));  // within their time, which a stranger that says nothing has, too
}

TEST_CASE("a rank refused learns why, and rank 0 tells who is missing") {
  const Door door = *open_door();
  std::vector<Outcome> outcomes(4);
  const auto join = [&](size_t i, Rank rank, int size) {
    Rendezvous r = rendezvous(door, rank, size);
    if (rank == 0) r.timeout = milliseconds(1500);
    const auto job = Bootstrap::join(r);
    outcomes[i] = job ? "joined" : job.error().what;
  };
  std::thread root([&] { join(0, 0, 4); });
  std::thread first([&] { join(1, 1, 4); });
  std::thread second([&] { join(2, 1, 4); });
  std::thread other([&] { join(3, 2, 3); });
  for (std::thread* thread : {&root, &first, &second, &other}) thread->join();
  CHECK(outcomes[0].find("rendezvous: ranks 2, 3 of 4 did not join within 1.5 s") == 0);
  CHECK(outcomes[3] == "rank 2 says the job has 3 ranks, rank 0 says 4");
  if (outcomes[1] != "rank 1 joined twice") std::swap(outcomes[1], outcomes[2]);
  CHECK(outcomes[1] == "rank 1 joined twice");
  CHECK(outcomes[2] == outcomes[0]);
}

TEST_CASE("ranks wait for rank 0 at a door that is closed only where it may be opened yet, and at one that is open") {
  auto door = std::make_optional(*open_door());
  Rendezvous at = rendezvous(*door, 1, 2);
  at.timeout = milliseconds(500);
  at.gone_after = milliseconds(100);
  auto job = Bootstrap::join(at);
  REQUIRE_FALSE(job);
  CHECK(job.error().code == Code::timeout);

  door.reset();
  at.timeout = seconds(20);
  const auto begun = std::chrono::steady_clock::now();
  job = Bootstrap::join(at);
  REQUIRE_FALSE(job);
  CHECK(job.error().code == Code::remote);
  CHECK(job.error().what == "rank 1: nobody listens at 127.0.0.1:" + std::to_string(at.port) +
                                " any more (Connection refused): rank 0's process is gone, waits for no more ranks, or never came");
  CHECK(std::chrono::steady_clock::now() - begun < seconds(10));

  at.timeout = milliseconds(500);
  at.gone_after = {};
  job = Bootstrap::join(at);
  REQUIRE_FALSE(job);
  CHECK(job.error().code == Code::timeout);
}

TEST_CASE("a rank that can't be of the job ends it for all where only its ranks know of it") {
  const bool twice = GENERATE(true, false);
  const Door door = *open_door();
  std::vector<Outcome> outcomes(4);
  std::vector<std::thread> threads;
  const auto join = [&](size_t i, Rank rank, int size) {
    Rendezvous at = rendezvous(door, rank, size);
    at.gone_after = seconds(15);
    const auto job = Bootstrap::join(at);
    outcomes[i] = job ? "joined" : job.error().what;
  };
  const auto begun = std::chrono::steady_clock::now();
  for (Rank rank = 0; rank < 3; ++rank) threads.emplace_back([&, rank] { join(static_cast<size_t>(rank), rank, 4); });
  threads.emplace_back([&] { join(3, twice ? 1 : 3, twice ? 4 : 5); });
  for (std::thread& thread : threads) thread.join();
  const std::string why = twice ? "rank 1 joined twice" : "rank 3 says the job has 5 ranks, rank 0 says 4";
  for (const Outcome& outcome : outcomes) CHECK(outcome.find(why) != Outcome::npos);
  CHECK(std::chrono::steady_clock::now() - begun < seconds(10));
}

TEST_CASE("ranks pass by a stranger to the next port") {
  const Door stranger = *open_door();  // silent, at the first port; rank 0 finds another free
  std::vector<Outcome> outcomes(2);
  std::vector<std::thread> ranks;
  for (Rank rank = 0; rank < 2; ++rank)
    ranks.emplace_back([&, rank] {
      Rendezvous r = rendezvous(stranger, rank, 2);
      r.listen_fd = -1;
      r.ports = 8;
      r.host = "localhost";
      const auto job = Bootstrap::join(r);
      outcomes[static_cast<size_t>(rank)] = job ? gathered(**job, [](Rank x) { return std::to_string(x); }) : job.error().what;
    });
  for (std::thread& thread : ranks) thread.join();
  INFO(outcomes[0] << " | " << outcomes[1]);
  CHECK(all_well(outcomes));
}

TEST_CASE("where other hosts find a rank NCCL's variables choose") {
  ::setenv("NCCL_SOCKET_IFNAME", "lo", 1);
  CHECK(open_wide_door()->host == "127.0.0.1");
  ::setenv("NCCL_SOCKET_IFNAME", "there-is-none", 1);
  CHECK(open_wide_door()->host != "");
  ::unsetenv("NCCL_SOCKET_IFNAME");
  CHECK(open_wide_door()->host.find("fe80:") == std::string::npos);
}

TEST_CASE("a rank that is told to gives up joining") {
  const bool root_gives_up = GENERATE(true, false);
  const Door door = *open_wide_door();
  std::atomic<bool> cancelled{false};
  const auto join = [&](Rank rank, bool cancellable) {
    Rendezvous at = rendezvous(door, rank, 3);
    if (cancellable) at.cancelled = &cancelled;
    const auto job = Bootstrap::join(at);
    return job ? Outcome("joined") : job.error().what;
  };
  // The root waits for rank 2, who never comes; rank 1 for the root.
  std::vector<Outcome> outcomes(2);
  std::thread root([&] { outcomes[0] = root_gives_up ? join(0, true) : ""; });
  std::thread other([&] { outcomes[1] = join(1, !root_gives_up); });
  std::this_thread::sleep_for(milliseconds(100));  // as a rule both wait by then; what is tested holds in any case
  cancelled = true;
  root.join();
  other.join();
  INFO(outcomes[0] << " | " << outcomes[1]);
  CHECK(outcomes[root_gives_up ? 0 : 1].find(root_gives_up ? "rank 0 gave up" : "rank 1 gave up") != Outcome::npos);
  CHECK(outcomes[1] != "joined");
}

TEST_CASE("where no rendezvous can be, the error says what was tried") {
  const Door taken = *open_door();
  Rendezvous r = rendezvous(taken, 0, 2);
  r.listen_fd = -1;
  auto job = Bootstrap::join(r);
  REQUIRE_FALSE(job);
  CHECK(job.error().what == "rank 0: cannot listen on 127.0.0.1:" + std::to_string(taken.port) + ": Address already in use");

  r.rank = 1;
  r.timeout = milliseconds(100);
  job = Bootstrap::join(r);  // connects, but nobody accepts
  REQUIRE_FALSE(job);
  CHECK(job.error().code == Code::timeout);
  CHECK(job.error().what.find("rank 1: no rendezvous at 127.0.0.1:") == 0);

  r.port = 1;
  job = Bootstrap::join(r);
  REQUIRE_FALSE(job);
  CHECK(job.error().what == "rank 1: no rendezvous at 127.0.0.1:1 within 0.1 s: Connection refused");

  r.host = "no such host";
  job = Bootstrap::join(r);
  REQUIRE_FALSE(job);
  CHECK(job.error().what.find("rank 1: cannot resolve no such host: ") == 0);

  r.rank = 2;
  CHECK_FALSE(Bootstrap::join(r));
  r.rank = 1;
  r.port = 0;
  CHECK_FALSE(Bootstrap::join(r));
}

namespace {

/// A process that joins as `rank`, acts, and then only is there; runs before any thread of the test does.
pid_t fork_rank(
    const Door& door, Rank rank, int size, const std::function<void()>& act = [] {}) {
  const pid_t pid = ::fork();
  if (pid != 0) return pid;
  const auto job = Bootstrap::join(rendezvous(door, rank, size));
  if (!job || !(*job)->barrier()) ::_exit(1);
  act();
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
    const pid_t pid = fork_rank(door, victim, 4, [&] {
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

TEST_CASE("a frame that is longer than allowed ends the connection") {
  const Door door = *open_door();
  const UniqueFd peer = connect_to(door.port);
  bootstrap::Connection connection{PrivateFd(UniqueFd(::accept(door.fd.get(), nullptr, nullptr)))};
  say(peer, std::string("\xff\xff\xff\xff\x01", 5));
  std::vector<bootstrap::Message> messages;
  std::optional<std::string> ended;
  while (!ended) ended = connection.receive(messages);
  CHECK(*ended == "its connection brought what is no message of ours");
  CHECK(messages.empty());
}
