// Making and asking communicators, by gyre alone.
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <string_view>

#include "plugin/nccl/bell.h"
#include "plugin/nccl/config.h"
#include "plugin/nccl/unique_id.h"
#include "test/becomes.h"
#include "test/catch.h"
#include "test/kept_log.h"
#include "test/plugin/nccl_ranks.h"
#include "transport/bootstrap_socket.h"

using namespace gyre::test;
using gyre::plugin::nccl::meeting;
using gyre::plugin::nccl::settings;

namespace {

ncclResult_t init_with(ncclConfig_t& config, ncclComm_t& comm) { return ncclCommInitRankConfig(&comm, 1, new_id(), 0, &config); }

/// Below the range from which the kernel gives ports to others, so that it stays free.
int free_port() {
  for (int port = 20000 + ::getpid() % 10000;; ++port) {
    gyre::transport::Rendezvous here;
    here.port = static_cast<uint16_t>(port);
    if (gyre::transport::bootstrap::listen(here)) return port;
  }
}

}  // namespace

TEST_CASE("nccl: the config of every release is read by its size and version") {
  struct Release {
    unsigned version;
    size_t bytes;
  };
  const auto release = GENERATE(Release{21403, 24}, Release{21700, 40}, Release{21805, 48}, Release{22707, 72}, Release{22809, 80},
                                Release{22903, 88}, Release{23007, 96}, Release{24000, 200});
  std::array<char, 256> memory;
  memory.fill('\x55');  // what is behind the program's config is not the config's
  ncclConfig_t config = nccl_config(release.version, release.bytes);
  config.blocking = 1;
  std::memcpy(memory.data(), &config, std::min(release.bytes, sizeof config));
  ncclComm_t comm = nullptr;
  ncclConfig_t* given = nullptr;
  void* at = memory.data();
  std::memcpy(&given, &at, sizeof at);
  CHECK(ncclCommInitRankConfig(&comm, 1, new_id(), 0, given) == ncclSuccess);
  CHECK(ncclCommDestroy(comm) == ncclSuccess);
}

TEST_CASE("nccl: padding of an old config is not read as a newer field") {
  ncclConfig_t config = nccl_config(21403, 48);
  config.minCTAs = 99, config.maxCTAs = 1, config.splitShare = 77;
  ncclComm_t comm = nullptr;
  CHECK(init_with(config, comm) == ncclSuccess);
  CHECK(ncclCommDestroy(comm) == ncclSuccess);
}

TEST_CASE("nccl: a cluster of blocks may be asked for that is larger than any GPU has") {
  ncclConfig_t config = nccl_config();
  config.cgaClusterSize = 16;
  ncclComm_t comm = nullptr;
  CHECK(init_with(config, comm) == ncclSuccess);
  CHECK(ncclCommDestroy(comm) == ncclSuccess);
}

TEST_CASE("nccl: what a config can't say is an error that names the field") {
  ncclConfig_t config = nccl_config();
  std::string field;
  SECTION("size") { config.size = 8, field = "config.size"; }
  SECTION("magic") { config.magic = 1, field = "config.magic"; }
  SECTION("blocking") { config.blocking = 2, field = "config.blocking"; }
  SECTION("cluster") { config.cgaClusterSize = -1, field = "config.cgaClusterSize"; }
  SECTION("CTAs") { config.minCTAs = 8, config.maxCTAs = 4, field = "config.minCTAs"; }
  SECTION("share") { config.splitShare = -1, field = "config.splitShare"; }
  ncclComm_t comm = nullptr;
  CHECK(init_with(config, comm) == ncclInvalidArgument);
  CHECK(comm == nullptr);
  CHECK(std::string_view(ncclGetLastError(nullptr)).find(field) != std::string_view::npos);
}

TEST_CASE("nccl: the environment says whether communicators block") {
  const KeptLog log;
  const auto blocks = [](const char* value, int configured) {
    ::setenv("NCCL_COMM_BLOCKING", value, 1);
    ncclConfig_t config = nccl_config();
    config.blocking = configured;
    const auto chosen = settings(&config);
    REQUIRE(chosen);
    return chosen->blocking;
  };
  for (const int configured : {0, 1}) {
    for (const char* const zero : {"0", "00", "0x0", " 0", "-0", "maybe"}) CHECK_FALSE(blocks(zero, configured));
    for (const char* const one : {"1", "01", "0x1", "+1", "1x"}) CHECK(blocks(one, configured));
    for (const char* const passed_over : {"", "2", "-1", "99999999999999999999"})
      CHECK(blocks(passed_over, configured) == (configured == 1));
  }
  CHECK(log.count("NCCL_COMM_BLOCKING=2 is passed over") == 1);
  CHECK(log.count("is passed over") == 1);  // for all communicators
  ncclComm_t comm = nullptr;
  ::setenv("NCCL_COMM_BLOCKING", "0", 1);
  CHECK(ncclCommInitRank(&comm, 1, new_id(), 0) == ncclInProgress);
  CHECK(settled(comm) == ncclSuccess);
  CHECK(ncclCommDestroy(comm) == ncclSuccess);
  ::unsetenv("NCCL_COMM_BLOCKING");
}

TEST_CASE("nccl: ranks meet where NCCL_COMM_ID says") {
  ::setenv("NCCL_COMM_ID", fmt::format("127.0.0.1:{}", free_port()).c_str(), 1);
  CHECK(run_nccl(3, [](ncclComm_t comm, int) -> std::string {
          int one = 1, sum = 0;
          NCCL_OK(ncclAllReduce(&one, &sum, 1, ncclInt32, ncclSum, comm, nullptr));
          return sum == 3 ? "" : "a wrong sum";
        }) == "");
  const auto wrong = GENERATE("localhost", "localhost:", ":29500", "localhost:0", "localhost:65536", "localhost:29500x");
  ncclUniqueId id;
  ::setenv("NCCL_COMM_ID", wrong, 1);
  CHECK(ncclGetUniqueId(&id) == ncclInvalidArgument);
  CHECK(std::string_view(ncclGetLastError(nullptr)).find(wrong) != std::string_view::npos);
  ::unsetenv("NCCL_COMM_ID");
}

TEST_CASE("nccl: an id is gyre's, of this rank's process, and used once") {
  ncclComm_t comm = nullptr, other = nullptr;
  ncclUniqueId id;
  std::memset(&id, 1, sizeof id);
  CHECK(ncclCommInitRank(&comm, 2, id, 0) == ncclInvalidArgument);
  CHECK(ncclCommInitRank(&comm, 2, id, 1) == ncclInvalidArgument);
  CHECK(ncclGetUniqueId(nullptr) == ncclInvalidArgument);
  id = new_id();
  std::thread rank_1([&] { std::ignore = ncclCommInitRank(&other, 2, id, 1); });
  CHECK(ncclCommInitRank(&comm, 2, id, 0) == ncclSuccess);
  rank_1.join();
  ncclComm_t again = nullptr;
  CHECK(ncclCommInitRank(&again, 2, id, 0) == ncclInvalidUsage);
  CHECK(again == nullptr);
  for (ncclComm_t made : {comm, other}) CHECK(ncclCommDestroy(made) == ncclSuccess);
}

TEST_CASE("nccl: nobody waits for ever for whoever may use an id") {
  const auto over = std::make_shared<std::atomic<bool>>(false);
  const auto heard = std::make_shared<int>(0);  // the thread has it, too
  CHECK(gyre::plugin::nccl::hang_bell(
            7, over, [heard] { ++*heard; }, std::chrono::milliseconds(20)) != 0);
  CHECK(becomes([&] { return heard.use_count() == 1; }));
  CHECK(*heard == 0);
}

TEST_CASE("nccl: who knows that rank 0's door was open before does not wait for ever at a closed one") {
  CHECK(meeting(new_id(), 1, 2)->rendezvous.gone_after == std::chrono::seconds(20));
  ::setenv("NCCL_COMM_ID", "127.0.0.1:29500", 1);
  CHECK(meeting(new_id(), 1, 2)->rendezvous.gone_after == std::chrono::seconds(0));
  ::unsetenv("NCCL_COMM_ID");
}

TEST_CASE("nccl: ranks do not wait at the door of an id that rank 0 has of another process") {
  if (std::getenv("TEST_SANITIZED") != nullptr) return;  // whose children of several threads start none
  std::array<int, 2> ends{};
  REQUIRE(::pipe(ends.data()) == 0);
  const pid_t root = ::fork();  // before there is an id, which would be its own, too
  if (root == 0) {
    ncclComm_t comm = nullptr;
    ncclUniqueId id;
    ::_exit(::read(ends[0], &id, sizeof id) == ssize_t{sizeof id} ? ncclCommInitRank(&comm, 2, id, 0) : -1);
  }
  const ncclUniqueId id = new_id();
  CHECK(::write(ends[1], &id, sizeof id) == ssize_t{sizeof id});
  auto at = *meeting(id, 1, 2);
  at.rendezvous.gone_after = std::chrono::milliseconds(100);
  const auto job = gyre::transport::Bootstrap::join(at.rendezvous);
  REQUIRE_FALSE(job);
  CHECK(job.error().what.find("nobody listens") != std::string::npos);
  int status = -1;
  ::waitpid(root, &status, 0);
  CHECK((WIFEXITED(status) && WEXITSTATUS(status) == ncclInvalidUsage));
  for (const int end : ends) ::close(end);
}

TEST_CASE("nccl: of several ids the ranks meet at the first") {
  const std::array<ncclUniqueId, 2> made{new_id(), new_id()};
  Words words(3);
  std::vector<std::thread> threads;
  const auto body = [&](int rank) -> std::string {
    std::array<ncclUniqueId, 2> ids = made;
    ncclComm_t comm = nullptr;
    int sum = 0;
    NCCL_OK(ncclCommInitRankScalable(&comm, 3, rank, 2, ids.data(), nullptr));
    NCCL_OK(ncclAllReduce(&rank, &sum, 1, ncclInt32, ncclSum, comm, nullptr));
    NCCL_OK(ncclCommDestroy(comm));
    return sum == 3 ? "" : "a wrong sum";
  };
  for (int rank = 0; rank < 3; ++rank) threads.emplace_back([&, rank] { words[static_cast<size_t>(rank)] = body(rank); });
  for (std::thread& thread : threads) thread.join();
  CHECK(first_wrong(words) == "");
}

TEST_CASE("nccl: communicators are split by color and key, and all of them work") {
  CHECK(run_nccl(5, [](ncclComm_t comm, int rank) -> std::string {
          ncclComm_t part = nullptr;
          int own = -1, count = 0, sum = 0;
          NCCL_OK(ncclCommSplit(comm, rank == 4 ? NCCL_SPLIT_NOCOLOR : rank % 2, -rank, &part, nullptr));
          if (rank == 4) return part == nullptr ? "" : "a communicator of no color";
          NCCL_OK(ncclCommUserRank(part, &own));
          NCCL_OK(ncclCommCount(part, &count));
          NCCL_OK(ncclAllReduce(&rank, &sum, 1, ncclInt32, ncclSum, part, nullptr));
          NCCL_OK(ncclCommDestroy(part));
          return count == 2 && own == (rank < 2 ? 1 : 0) && sum == 2 + 2 * (rank % 2) ? "" : fmt::format("{} of {}, {}", own, count, sum);
        }) == "");
}

TEST_CASE("nccl: a part blocks as its parent does without a config, and by default where its own leaves that open") {
  ncclConfig_t config = nccl_config(), open = nccl_config();
  config.blocking = 0;
  const bool has_config = GENERATE(false, true);
  ncclConfig_t* const given = has_config ? &open : nullptr;
  ncclComm_t comm = nullptr, part = nullptr;
  REQUIRE(init_with(config, comm) == ncclInProgress);
  REQUIRE(settled(comm) == ncclSuccess);
  REQUIRE(ncclCommSplit(comm, 0, 0, &part, given) == ncclInProgress);
  REQUIRE(settled(comm) == ncclSuccess);
  int one = 1;
  CHECK(ncclAllReduce(&one, &one, 1, ncclInt32, ncclSum, part, nullptr) == (given == nullptr ? ncclInProgress : ncclSuccess));
  CHECK(settled(part) == ncclSuccess);
  for (ncclComm_t made : {part, comm}) CHECK(ncclCommDestroy(made) == ncclSuccess);
}
