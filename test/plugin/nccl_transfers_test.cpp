// NCCL's interface by gyre alone on GPU memory: sends and receives in the order of streams, which calls don't wait for.
#include <cstdlib>
#include <future>
#include <numeric>
#include <tuple>

#include "test/catch.h"
#include "test/plugin/host_cuda.h"
#include "test/plugin/nccl_ranks.h"

using namespace gyre;
using test::first_error;
using test::HostCudaStream;
using test::run_nccl;
using test::WithHostCuda;
using namespace std::chrono_literals;

namespace {

constexpr size_t long_elements = (size_t{1} << 20) / sizeof(int);  // of a message that no connection takes before it is received
constexpr size_t short_elements = 3000;

using CarriedInts = test::HostCudaArray<int>;

/// A rank of a ring in which each two neighbours have a communicator and a stream of their own.
struct OfRing {
  ncclComm_t to_next = nullptr, from_previous = nullptr;
  CarriedInts out, in{long_elements, -1};
  HostCudaStream sending, receiving;

  explicit OfRing(int rank) : out(long_elements, rank) {}
  std::string join(const ncclUniqueId& next, const ncclUniqueId& previous) {
    NCCL_OK(ncclGroupStart());
    NCCL_OK(ncclCommInitRank(&to_next, 2, next, 0));
    NCCL_OK(ncclCommInitRank(&from_previous, 2, previous, 1));
    NCCL_OK(ncclGroupEnd());
    return "";
  }
  std::string pass(int previous) {
    NCCL_OK(ncclSend(out.data(), long_elements, ncclInt32, 1, to_next, sending));
    NCCL_OK(ncclRecv(in.data(), long_elements, ncclInt32, 0, from_previous, receiving));
    if (!sending.done() || !receiving.done()) return "the streams do not end";
    return in.all(previous) ? "" : "wrong data";
  }
  void end(ncclResult_t (*how)(ncclComm_t)) const {
    for (const ncclComm_t comm : {to_next, from_previous}) CHECK(how(comm) == ncclSuccess);
  }
};

/// Opened once, also where a test fails.
class Gate {
 public:
  explicit Gate(HostCudaStream& stream) {
    stream.add([opened = opened_] {
      while (!*opened) std::this_thread::yield();
    });
  }
  ~Gate() { open(); }
  Gate(const Gate&) = delete;
  Gate& operator=(const Gate&) = delete;
  void open() const { *opened_ = true; }

 private:
  std::shared_ptr<std::atomic<bool>> opened_ = std::make_shared<std::atomic<bool>>(false);
};

}  // namespace

TEST_CASE("nccl on a GPU: a ring of pairs passes long messages on, each rank first sending and then receiving") {
  const WithHostCuda gpu;
  const int ranks = GENERATE(2, 3, 4);
  std::vector<ncclUniqueId> ids(static_cast<size_t>(ranks));
  for (ncclUniqueId& id : ids) id = test::new_id();
  std::vector<std::unique_ptr<OfRing>> ring;
  std::vector<std::future<std::string>> words;
  const auto previous = [ranks](int rank) { return (rank + ranks - 1) % ranks; };
  for (int rank = 0; rank < ranks; ++rank) ring.push_back(std::make_unique<OfRing>(rank));
  for (int rank = 0; rank < ranks; ++rank) {
    words.push_back(std::async(std::launch::async, [&, rank] {
      return ring[static_cast<size_t>(rank)]->join(ids[static_cast<size_t>(rank)], ids[static_cast<size_t>(previous(rank))]);
    }));
  }
  for (auto& word : words) REQUIRE(word.get() == "");
  for (int rank = 0; rank < ranks; ++rank)
    words[static_cast<size_t>(rank)] =
        std::async(std::launch::async, [&, rank] { return ring[static_cast<size_t>(rank)]->pass(previous(rank)); });
  const auto until = std::chrono::steady_clock::now() + 60s;
  const bool passed =
      std::all_of(words.begin(), words.end(), [until](auto& word) { return word.wait_until(until) == std::future_status::ready; });
  CHECK(passed);
  for (const auto& rank : ring) rank->end(passed ? ncclCommDestroy : ncclCommAbort);  // or the test would not end
  for (auto& word : words) CHECK(word.get() == "");
}

TEST_CASE("nccl on a GPU: sends and receives come in the order of their streams, and calls don't wait") {
  const WithHostCuda gpu;
  CHECK(run_nccl(2, [](ncclComm_t comm, int rank) -> std::string {
          CarriedInts data(short_elements, -1), copied(short_elements, -1);
          HostCudaStream stream;
          const Gate gate(stream);
          if (rank == 0) stream.add([&] { std::iota(data.data(), data.data() + short_elements, 1); });
          auto given = std::async(std::launch::async, [&, on = cudaStream_t(stream)]() -> std::string {
            for (int i = 0; i < 3; ++i) {
              NCCL_OK(rank == 0 ? ncclSend(data.data() + i, short_elements - 2, ncclInt32, 1, comm, on)
                                : ncclRecv(data.data() + i, short_elements - 2, ncclInt32, 0, comm, on));
            }
            return "";
          });
          const bool returned = given.wait_for(20s) == std::future_status::ready;
          if (!returned) gate.open();
          if (const std::string word = given.get(); !word.empty()) return word;
          if (!returned) return "a call waits for its stream";
          stream.add([&] { std::copy_n(data.data(), short_elements, copied.data()); });
          gate.open();
          if (!stream.done()) return "the stream does not end";
          std::vector<int> expected(short_elements);
          std::iota(expected.begin(), expected.end(), 1);
          return std::equal(expected.begin(), expected.end(), copied.data()) ? "" : "wrong data";
        }) == "");
}

TEST_CASE("nccl on a GPU: a group of sends and receives is in the order of each of its streams") {
  const WithHostCuda gpu;
  test::Late late;
  CHECK(run_nccl(2, [&](ncclComm_t comm, int rank) -> std::string {
          bool in_order = true;
          CarriedInts out(short_elements, rank), in(short_elements, -1);
          HostCudaStream first, second;
          second.add([&] {
            if (rank == 0) late.wait();
          });
          NCCL_OK(ncclGroupStart());
          NCCL_OK(ncclSend(out.data(), short_elements, ncclInt32, 1 - rank, comm, first));
          NCCL_OK(ncclRecv(in.data(), short_elements, ncclInt32, 1 - rank, comm, second));
          NCCL_OK(ncclGroupEnd());
          first.add([&] {
            in_order = late.done;
            late.overtaken = true;
          });
          if (!first.done() || !second.done()) return "the streams do not end";
          return in_order && in.all(1 - rank) ? "" : "the group did not wait for all of its streams";
        }) == "");
}

TEST_CASE("nccl on a GPU: calls on memory of the host and communicators that are split off come after sends before them") {
  const WithHostCuda gpu;
  CHECK(run_nccl(2, [](ncclComm_t comm, int rank) -> std::string {
          CarriedInts data(short_elements, rank), none(short_elements, 0);
          HostCudaStream stream;
          int one = 1, sum = 0, other = -1;
          const auto carry = [&] {
            return rank == 0 ? ncclSend(data.data(), short_elements, ncclInt32, 1, comm, stream)
                             : ncclRecv(data.data(), short_elements, ncclInt32, 0, comm, stream);
          };
          NCCL_OK(carry());
          NCCL_OK(ncclAllReduce(&one, &sum, 1, ncclInt32, ncclSum, comm, nullptr));
          NCCL_OK(carry());
          // One end of a message may be on the host.
          NCCL_OK(rank == 0 ? ncclSend(data.data(), 1, ncclInt32, 1, comm, stream) : ncclRecv(&other, 1, ncclInt32, 0, comm, nullptr));
          NCCL_OK(carry());
          ncclComm_t part = nullptr;
          NCCL_OK(ncclCommSplit(comm, 0, rank, &part, nullptr));
          NCCL_OK(ncclCommDestroy(part));
          NCCL_OK(carry());
          // To itself, and nothing at all.
          NCCL_OK(ncclGroupStart());
          NCCL_OK(ncclSend(data.data(), short_elements, ncclInt32, rank, comm, stream));
          NCCL_OK(ncclRecv(none.data(), short_elements, ncclInt32, rank, comm, stream));
          NCCL_OK(ncclSend(data.data(), 0, ncclInt32, 1 - rank, comm, stream));
          NCCL_OK(ncclRecv(none.data(), 0, ncclInt32, 1 - rank, comm, stream));
          NCCL_OK(ncclGroupEnd());
          if (!stream.done()) return "the stream does not end";
          return sum == 2 && data.all(0) && none.all(0) && other == (rank == 0 ? -1 : 0) ? "" : "wrong data";
        }) == "");
}

TEST_CASE("nccl on a GPU: a receive whose sender does not come holds its stream until an abort, and says so") {
  const WithHostCuda gpu;
  CarriedInts data(short_elements, 1);
  HostCudaStream stream;
  std::array<ncclComm_t, 2> comms{};
  ::setenv("GYRE_DEADLINE", "2", 1);
  REQUIRE(ncclCommInitAll(comms.data(), 2, nullptr) == ncclSuccess);
  ::unsetenv("GYRE_DEADLINE");
  CHECK(ncclRecv(data.data(), short_elements, ncclInt32, 1, comms[0], stream) == ncclSuccess);
  const auto behind = std::make_shared<std::atomic<bool>>(false);
  stream.add([behind] { *behind = true; });
  SECTION("by a call") { CHECK(ncclCommRevoke(comms[1], 0) == ncclSuccess); }
  SECTION("by a deadline") {}
  SECTION("by its end") { CHECK(ncclCommDestroy(std::exchange(comms[1], nullptr)) == ncclSuccess); }
  CHECK(first_error(comms[0]) == ncclRemoteError);
  CHECK(ncclRecv(data.data(), short_elements, ncclInt32, 1, comms[0], stream) == ncclRemoteError);
  std::this_thread::sleep_for(50ms);
  CHECK_FALSE(*behind);
  CHECK(ncclCommAbort(comms[0]) == ncclSuccess);
  CHECK(stream.done());
  CHECK(ncclCommAbort(comms[1]) == ncclSuccess);
}

TEST_CASE("nccl on a GPU: an abort ends a call that waits for a receive before it") {
  const WithHostCuda gpu;
  CarriedInts data(short_elements, 1);
  HostCudaStream stream;
  std::array<ncclComm_t, 2> comms{};
  REQUIRE(ncclCommInitAll(comms.data(), 2, nullptr) == ncclSuccess);
  CHECK(ncclRecv(data.data(), short_elements, ncclInt32, 1, comms[0], stream) == ncclSuccess);
  auto waits = std::async(std::launch::async, [comm = comms[0]] {
    int one = 1;
    return ncclAllReduce(&one, &one, 1, ncclInt32, ncclSum, comm, nullptr);
  });
  CHECK(waits.wait_for(50ms) == std::future_status::timeout);
  CHECK(ncclCommAbort(comms[0]) == ncclSuccess);
  CHECK(waits.get() != ncclSuccess);
  CHECK(stream.done());
  CHECK(ncclCommAbort(comms[1]) == ncclSuccess);
}

TEST_CASE("nccl on a GPU: communicators are aborted whose receives wait for each other's in a stream") {
  const WithHostCuda gpu;
  CarriedInts data(short_elements, 1);
  HostCudaStream stream;
  std::array<std::array<ncclComm_t, 2>, 2> pairs{};
  for (auto& pair : pairs) REQUIRE(ncclCommInitAll(pair.data(), 2, nullptr) == ncclSuccess);
  for (const size_t pair : {0U, 1U, 0U})
    CHECK(ncclRecv(data.data(), short_elements, ncclInt32, 1, pairs.at(pair)[0], stream) == ncclSuccess);
  CHECK(ncclCommAbort(pairs[1][0]) == ncclSuccess);
  CHECK_FALSE(stream.done_within(50ms));
  CHECK(ncclCommAbort(pairs[0][0]) == ncclSuccess);
  CHECK(stream.done());
  for (const auto& pair : pairs) CHECK(ncclCommAbort(pair[1]) == ncclSuccess);
}

TEST_CASE("nccl on a GPU: messages that do not fit are an error of both ends") {
  const WithHostCuda gpu;
  std::array<ncclComm_t, 2> comms{};
  CarriedInts out(short_elements, 1), in(short_elements, 1);
  std::array<HostCudaStream, 2> streams;
  REQUIRE(ncclCommInitAll(comms.data(), 2, nullptr) == ncclSuccess);
  CHECK(ncclSend(out.data(), short_elements, ncclInt32, 1, comms[0], streams[0]) == ncclSuccess);
  CHECK(ncclRecv(in.data(), short_elements - 1, ncclInt32, 0, comms[1], streams[1]) == ncclSuccess);
  CHECK(first_error(comms[1]) == ncclInvalidUsage);
  CHECK(first_error(comms[0]) != ncclSuccess);
  for (const ncclComm_t comm : comms) CHECK(ncclCommAbort(comm) == ncclSuccess);
  for (HostCudaStream& stream : streams) CHECK(stream.done());
}

TEST_CASE("nccl on a GPU: who waits for a stream that messages which do not fit hold elsewhere hears of it, and ends") {
  const WithHostCuda gpu;
  std::array<ncclComm_t, 3> comms{};
  CarriedInts out(short_elements, 1), in(short_elements, -1), sums(short_elements, 1);
  std::array<HostCudaStream, 3> streams;
  REQUIRE(ncclCommInitAll(comms.data(), 3, nullptr) == ncclSuccess);
  const auto reduce = [&](size_t rank) {
    return ncclAllReduce(out.data(), sums.data(), 1, ncclInt32, ncclSum, comms.at(rank), streams.at(rank));
  };
  CHECK(reduce(2) == ncclSuccess);
  CHECK(ncclSend(out.data(), short_elements, ncclInt32, 1, comms[0], streams[0]) == ncclSuccess);
  CHECK(ncclRecv(in.data(), short_elements - 1, ncclInt32, 0, comms[1], streams[1]) == ncclSuccess);
  for (const size_t rank : {0U, 1U}) std::ignore = reduce(rank);  // they may know already
  auto ends = std::async(std::launch::async, [comm = comms[2]] { return ncclCommDestroy(comm); });
  CHECK(ends.wait_for(20s) == std::future_status::ready);
  CHECK(ncclCommAbort(comms[1]) == ncclSuccess);
  ends.wait();
  CHECK(ncclCommAbort(comms[0]) == ncclSuccess);
  for (HostCudaStream& stream : streams) CHECK(stream.done());
}

TEST_CASE("nccl on a GPU: a group that there is no pinned memory for is carried in the call, between others") {
  const WithHostCuda gpu;
  const bool has_some = GENERATE(true, false);
  CHECK(run_nccl(2, [&](ncclComm_t comm, int rank) -> std::string {
          CarriedInts out(long_elements, rank), in(long_elements, -1), before(short_elements, -1), after(short_elements, -1);
          HostCudaStream stream;
          const auto exchange = [&](CarriedInts& to, size_t length) -> std::string {
            NCCL_OK(ncclGroupStart());
            NCCL_OK(ncclSend(out.data(), length, ncclInt32, 1 - rank, comm, stream));
            NCCL_OK(ncclRecv(to.data(), length, ncclInt32, 1 - rank, comm, stream));
            NCCL_OK(ncclGroupEnd());
            return "";
          };
          int one = 1, sum = 0;
          if (const std::string word = has_some ? exchange(before, short_elements) : ""; !word.empty()) return word;
          NCCL_OK(ncclAllReduce(&one, &sum, 1, ncclInt32, ncclSum, comm, nullptr));  // both have what they need so far
          test::limit_host_pinned(0);
          if (const std::string word = exchange(in, long_elements); !word.empty()) return word;
          if (!in.all(1 - rank)) return "the call has returned before";
          if (const std::string word = exchange(after, short_elements); !word.empty()) return word;
          if (!stream.done()) return "the stream does not end";
          return after.all(1 - rank) && (!has_some || before.all(1 - rank)) ? "" : "wrong data";
        }) == "");
  test::limit_host_pinned(SIZE_MAX);
}

TEST_CASE("nccl on a GPU: a group's part waits for no other communicator's engine") {
  const WithHostCuda gpu;
  const bool on_gpu = GENERATE(true, false);  // that part
  CarriedInts first(1, 0), second(1, 7), received(1, 0);
  int word = 7, one[2]{1, 1};
  HostCudaStream streams[2], others[2];
  std::array<std::array<ncclComm_t, 2>, 2> pairs{};
  for (auto& pair : pairs) REQUIRE(ncclCommInitAll(pair.data(), 2, nullptr) == ncclSuccess);
  // The engine of the first pair is taken by what comes only after the second pair's message.
  auto rank0 = std::async(std::launch::async, [&]() -> std::string {
    NCCL_OK(ncclRecv(first.data(), 1, ncclInt32, 1, pairs[0][0], streams[0]));
    NCCL_OK(ncclGroupStart());
    NCCL_OK(ncclAllReduce(&one[0], &one[0], 1, ncclInt32, ncclSum, pairs[0][0], nullptr));
    NCCL_OK(ncclSend(on_gpu ? second.data() : &word, 1, ncclInt32, 1, pairs[1][0], streams[1]));
    NCCL_OK(ncclGroupEnd());
    return "";
  });
  auto rank1 = std::async(std::launch::async, [&]() -> std::string {
    NCCL_OK(ncclRecv(received.data(), 1, ncclInt32, 0, pairs[1][1], others[1]));
    if (!others[1].done()) return "nothing comes";
    NCCL_OK(ncclSend(received.data(), 1, ncclInt32, 0, pairs[0][1], others[0]));
    NCCL_OK(ncclAllReduce(&one[1], &one[1], 1, ncclInt32, ncclSum, pairs[0][1], nullptr));
    return "";
  });
  const bool passed = rank0.wait_for(20s) == std::future_status::ready;
  for (const auto& pair : pairs) {
    for (const ncclComm_t comm : pair)
      CHECK((passed && rank1.wait_for(20s) == std::future_status::ready ? ncclCommDestroy : ncclCommAbort)(comm) == ncclSuccess);
  }
  CHECK(passed);
  CHECK(rank0.get() == "");
  CHECK(rank1.get() == "");
  CHECK(first.all(7));
}

TEST_CASE("nccl on a GPU: a communicator is shrunk while a receive has its engine") {
  const WithHostCuda gpu;
  const bool aborts = GENERATE(true, false);
  std::array<CarriedInts, 2> data{CarriedInts(short_elements, 1), CarriedInts(short_elements, 1)};
  CarriedInts in(short_elements, 1);
  std::array<HostCudaStream, 2> streams;
  HostCudaStream receiving;
  std::array<ncclComm_t, 2> comms{};
  REQUIRE(ncclCommInitAll(comms.data(), 2, nullptr) == ncclSuccess);
  CHECK(ncclRecv(in.data(), short_elements, ncclInt32, 1, comms[0], receiving) == ncclSuccess);
  if (!aborts) {  // after an error of collectives, of which the engine does not hear
    for (size_t r = 0; r < 2; ++r)
      CHECK(ncclAllReduce(data.at(r).data(), data.at(r).data(), short_elements - r, ncclInt32, ncclSum, comms.at(r), streams.at(r)) ==
            ncclSuccess);
    CHECK(first_error(comms[0]) == ncclInvalidUsage);
  }
  int without = 1, one = 1;
  ncclComm_t rest = nullptr;
  CHECK(ncclCommShrink(comms[0], &without, 1, &rest, nullptr, aborts ? NCCL_SHRINK_ABORT : NCCL_SHRINK_DEFAULT) == ncclSuccess);
  CHECK(ncclAllReduce(&one, &one, 1, ncclInt32, ncclSum, rest, nullptr) == ncclSuccess);
  CHECK(ncclCommDestroy(rest) == ncclSuccess);
  CHECK(receiving.done_within(aborts ? 60s : 50ms) == aborts);
  for (const ncclComm_t comm : comms) CHECK(ncclCommAbort(comm) == ncclSuccess);
  CHECK(receiving.done());
  for (HostCudaStream& stream : streams) CHECK(stream.done());
}
