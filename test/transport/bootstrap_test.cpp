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
#include "test/transport/bootstrap_ranks.h"
#include "transport/bootstrap_wire.h"
#include "transport/door.h"

using namespace gyre;
using namespace gyre::transport;
using namespace gyre::test;
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
