// Groups of NCCL's interface by gyre alone.
#include <fmt/format.h>

#include <numeric>

#include "test/catch.h"
#include "test/plugin/nccl_ranks.h"

using namespace gyre::test;

TEST_CASE("nccl: a group of collectives and transfers is done as a whole") {
  const int ranks = GENERATE(2, 3, 4);
  CHECK(run_nccl(ranks, [&](ncclComm_t comm, int rank) -> std::string {
          int one = rank + 1, sum = 0, largest = 0, left = -1, self = -1;
          const int next = (rank + 1) % ranks, before = (rank + ranks - 1) % ranks;
          NCCL_OK(ncclGroupStart());
          NCCL_OK(ncclRecv(&left, 1, ncclInt32, before, comm, nullptr));
          NCCL_OK(ncclAllReduce(&one, &sum, 1, ncclInt32, ncclSum, comm, nullptr));
          NCCL_OK(ncclGroupStart());
          NCCL_OK(ncclSend(&one, 1, ncclInt32, next, comm, nullptr));
          NCCL_OK(ncclSend(&one, 1, ncclInt32, rank, comm, nullptr));
          NCCL_OK(ncclGroupEnd());
          NCCL_OK(ncclAllReduce(&one, &largest, 1, ncclInt32, ncclMax, comm, nullptr));
          NCCL_OK(ncclRecv(&self, 1, ncclInt32, rank, comm, nullptr));
          if (sum != 0 || left != -1) return "something was done before the end";
          NCCL_OK(ncclGroupEnd());
          if (sum == ranks * (ranks + 1) / 2 && largest == ranks && left == before + 1 && self == rank + 1) return {};
          return fmt::format("sum {}, largest {}, from the left {}, from itself {}", sum, largest, left, self);
        }) == "");
}

TEST_CASE("nccl: one thread runs all ranks of a job") {
  constexpr int ranks = 4;
  std::array<ncclComm_t, ranks> comms{};
  const std::array<int, ranks> devices{3, 1, 0, 2};
  REQUIRE(ncclCommInitAll(comms.data(), ranks, devices.data()) == ncclSuccess);
  std::array<int, ranks> in{}, out{}, from{};
  std::iota(in.begin(), in.end(), 1);
  for (int again = 0; again < 3; ++again) {
    REQUIRE(ncclGroupStart() == ncclSuccess);
    for (size_t r = 0; r < ranks; ++r) {
      CHECK(ncclAllReduce(&in[r], &out[r], 1, ncclInt32, ncclSum, comms[r], nullptr) == ncclSuccess);
      CHECK(ncclSend(&in[r], 1, ncclInt32, static_cast<int>((r + 1) % ranks), comms[r], nullptr) == ncclSuccess);
      CHECK(ncclRecv(&from[r], 1, ncclInt32, static_cast<int>((r + ranks - 1) % ranks), comms[r], nullptr) == ncclSuccess);
    }
    REQUIRE(ncclGroupEnd() == ncclSuccess);
    CHECK(out == std::array<int, ranks>{10, 10, 10, 10});
    CHECK(from == std::array<int, ranks>{4, 1, 2, 3});
  }
  std::array<ncclComm_t, ranks> halves{};
  REQUIRE(ncclGroupStart() == ncclSuccess);
  for (int r = 0; r < ranks; ++r)
    CHECK(ncclCommSplit(comms[static_cast<size_t>(r)], r / 2, 0, &halves[static_cast<size_t>(r)], nullptr) == ncclSuccess);
  REQUIRE(ncclGroupEnd() == ncclSuccess);
  for (size_t r = 0; r < ranks; ++r) {
    int device = -1, rank = -1;
    CHECK(ncclCommCuDevice(halves[r], &device) == ncclSuccess);
    CHECK(ncclCommUserRank(halves[r], &rank) == ncclSuccess);
    CHECK((device == devices[r] && rank == static_cast<int>(r % 2)));
  }
  for (const auto& all : {halves, comms}) {
    for (ncclComm_t comm : all) CHECK(ncclCommDestroy(comm) == ncclSuccess);
  }
}

TEST_CASE("nccl: a wrong call spoils its group, of which nothing is done") {
  CHECK(run_nccl(2, [](ncclComm_t comm, int) -> std::string {
          int one = 1, sum = 0;
          NCCL_OK(ncclGroupStart());
          NCCL_OK(ncclAllReduce(&one, &sum, 1, ncclInt32, ncclSum, comm, nullptr));
          NCCL_GIVES(ncclInvalidArgument, ncclBroadcast(&one, &sum, 1, ncclInt32, 2, comm, nullptr));
          NCCL_GIVES(ncclInvalidArgument, ncclGroupEnd());
          if (sum != 0) return "some of it was done";
          NCCL_OK(ncclAllReduce(&one, &sum, 1, ncclInt32, ncclSum, comm, nullptr));
          return sum == 2 ? "" : "the next call does not work";
        }) == "");
}

TEST_CASE("nccl: groups end as often as they begin, and do one kind of thing") {
  CHECK(ncclGroupEnd() == ncclInvalidUsage);
  CHECK(ncclGroupStart() == ncclSuccess);
  CHECK(ncclGroupEnd() == ncclSuccess);
  ncclComm_t comm = nullptr, other = nullptr;
  REQUIRE(ncclCommInitRank(&comm, 1, new_id(), 0) == ncclSuccess);
  int one = 1;
  CHECK(ncclGroupStart() == ncclSuccess);
  CHECK(ncclAllReduce(&one, &one, 1, ncclInt32, ncclSum, comm, nullptr) == ncclSuccess);
  CHECK(ncclCommInitRank(&other, 1, new_id(), 0) == ncclSuccess);
  CHECK(ncclGroupEnd() == ncclInvalidUsage);
  CHECK(other == nullptr);
  CHECK(ncclGroupStart() == ncclSuccess);
  CHECK(ncclSend(&one, 1, ncclInt32, 0, comm, nullptr) == ncclSuccess);
  CHECK(ncclGroupEnd() != ncclSuccess);  // to itself, and nobody receives
  CHECK(ncclCommDestroy(comm) == ncclSuccess);
}

TEST_CASE("nccl: a simulated group does nothing and says what it would take") {
  CHECK(run_nccl(2, [](ncclComm_t comm, int) -> std::string {
          int one = 1, sum = 0;
          ncclSimInfo_t info{sizeof info, NCCL_SIM_INFO_MAGIC, 22809, -1};
          NCCL_OK(ncclGroupStart());
          NCCL_OK(ncclAllReduce(&one, &sum, 1, ncclInt32, ncclSum, comm, nullptr));
          NCCL_OK(ncclGroupSimulateEnd(&info));
          NCCL_GIVES(ncclInvalidUsage, ncclGroupEnd());
          NCCL_OK(ncclGroupStart());
          info.magic = 0;
          NCCL_GIVES(ncclInvalidArgument, ncclGroupSimulateEnd(&info));
          NCCL_OK(ncclGroupEnd());
          return sum == 0 && info.estimatedTime > 0 ? "" : fmt::format("{} us", info.estimatedTime);
        }) == "");
}

TEST_CASE("nccl: a non-blocking communicator is in progress until it is not") {
  constexpr int ranks = 3;
  const ncclUniqueId id = new_id();
  Words words(ranks);
  std::vector<std::thread> threads;
  const auto body = [&](int rank) -> std::string {
    ncclConfig_t config = nccl_config();
    config.blocking = 0;
    ncclComm_t comm = nullptr, half = nullptr;
    NCCL_GIVES(ncclInProgress, ncclCommInitRankConfig(&comm, ranks, id, rank, &config));
    if (comm == nullptr) return "no handle at once";
    NCCL_OK(settled(comm));
    std::vector<int> data(100000, rank + 1);
    for (int again = 0; again < 5; ++again) {
      std::fill(data.begin(), data.end(), rank + 1);
      NCCL_GIVES(ncclInProgress, ncclAllReduce(data.data(), data.data(), data.size(), ncclInt32, ncclSum, comm, nullptr));
      NCCL_OK(settled(comm));
      if (data.front() != 6 || data.back() != 6) return "a wrong sum";
    }
    NCCL_GIVES(ncclInProgress, ncclCommSplit(comm, rank == 2 ? NCCL_SPLIT_NOCOLOR : 0, 0, &half, nullptr));
    NCCL_OK(settled(comm));
    if ((half == nullptr) != (rank == 2)) return "a half where none is, or none where one is";
    if (half != nullptr) NCCL_OK(ncclCommDestroy(half));
    NCCL_GIVES(ncclInProgress, ncclCommFinalize(comm));
    NCCL_OK(settled(comm));
    NCCL_OK(ncclCommDestroy(comm));
    return {};
  };
  for (int rank = 0; rank < ranks; ++rank) threads.emplace_back([&, rank] { words[static_cast<size_t>(rank)] = body(rank); });
  for (std::thread& thread : threads) thread.join();
  CHECK(first_wrong(words) == "");
}

TEST_CASE("nccl: a group with a transfer that nobody takes begins nothing") {
  const bool blocking = GENERATE(true, false);
  ncclConfig_t config = nccl_config();
  config.blocking = blocking ? 1 : 0;
  ncclComm_t comm = nullptr;
  REQUIRE(ncclCommInitRankConfig(&comm, 1, new_id(), 0, &config) == (blocking ? ncclSuccess : ncclInProgress));
  REQUIRE(settled(comm) == ncclSuccess);
  int one = 1, other = 0;
  CHECK(ncclGroupStart() == ncclSuccess);
  CHECK(ncclAllReduce(&one, &other, 1, ncclInt32, ncclSum, comm, nullptr) == ncclSuccess);
  CHECK(ncclSend(&one, 1, ncclInt32, 0, comm, nullptr) == ncclSuccess);
  CHECK(ncclGroupEnd() == (blocking ? ncclInvalidUsage : ncclInProgress));
  CHECK(settled(comm) == (blocking ? ncclSuccess : ncclInvalidUsage));  // who can't return it keeps it
  CHECK(other == 0);
  CHECK(ncclCommDestroy(comm) == ncclSuccess);
}

TEST_CASE("nccl: a group that is not done makes no communicators") {
  ncclConfig_t config = nccl_config();
  config.blocking = 0;
  ncclComm_t comm = nullptr, other = nullptr;
  int one = 1;
  CHECK(ncclGroupStart() == ncclSuccess);
  CHECK(ncclCommInitRankConfig(&comm, 1, new_id(), 0, &config) == ncclSuccess);
  SECTION("a call in it is wrong") {
    CHECK(ncclAllReduce(&one, &one, 1, ncclInt32, ncclSum, nullptr, nullptr) == ncclInvalidArgument);
    CHECK(ncclGroupEnd() == ncclInvalidArgument);
    CHECK(std::string(ncclGetLastError(nullptr)).find("comm is NULL") != std::string::npos);
  }
  SECTION("another blocks") {
    CHECK(ncclCommInitRank(&other, 1, new_id(), 0) == ncclSuccess);
    CHECK(ncclGroupEnd() == ncclInvalidArgument);
  }
  SECTION("it is simulated") { CHECK(ncclGroupSimulateEnd(nullptr) == ncclSuccess); }
  CHECK(comm == nullptr);
  CHECK(other == nullptr);
}

TEST_CASE("nccl: a communicator is split twice in one group") {
  CHECK(run_nccl(4, [](ncclComm_t comm, int rank) -> std::string {
          ncclComm_t halves = nullptr, pairs = nullptr;
          NCCL_OK(ncclGroupStart());
          NCCL_OK(ncclCommSplit(comm, rank / 2, 0, &halves, nullptr));
          NCCL_OK(ncclCommSplit(comm, rank % 2, 0, &pairs, nullptr));
          NCCL_OK(ncclGroupEnd());
          int sum = 0, other = 0;
          NCCL_OK(ncclAllReduce(&rank, &sum, 1, ncclInt32, ncclSum, halves, nullptr));
          NCCL_OK(ncclAllReduce(&rank, &other, 1, ncclInt32, ncclSum, pairs, nullptr));
          NCCL_OK(ncclCommDestroy(halves));
          NCCL_OK(ncclCommDestroy(pairs));
          return sum == 1 + 4 * (rank / 2) && other == 2 + 2 * (rank % 2) ? "" : fmt::format("{} and {}", sum, other);
        }) == "");
}
