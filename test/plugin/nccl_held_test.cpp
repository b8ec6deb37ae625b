// NCCL's interface by gyre alone: an error holds the streams of collectives on a GPU that have not finished, until their communicator ends.
#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdio>
#include <memory>
#include <thread>
#include <utility>

#include "test/becomes.h"
#include "test/catch.h"
#include "test/kept_log.h"
#include "test/plugin/host_cuda.h"
#include "test/plugin/nccl_ranks.h"

using namespace gyre;
using test::HostCudaStream;
using test::WithHostCuda;
using namespace std::chrono_literals;

namespace {

constexpr size_t held_elements = 20000;  // more than packets carry, of which no stream is ever full
constexpr size_t few = 64;               // a stream's capacity: what it still has when it is let go is run, by the host's threads

/// Two ranks of one thread, the second of which gives up. Streams are declared before, and so end after.
class Widowed {
 public:
  Widowed() { CHECK(ncclCommInitAll(comms_.data(), 2, nullptr) == ncclSuccess); }
  ~Widowed() {
    for (const ncclComm_t comm : comms_) ncclCommAbort(comm);
  }
  Widowed(const Widowed&) = delete;
  Widowed& operator=(const Widowed&) = delete;

  ncclComm_t comm() const { return comms_[0]; }
  ncclComm_t other() const { return comms_[1]; }
  /// To be ended.
  ncclComm_t take() { return std::exchange(comms_[0], nullptr); }
  void lose_other() { CHECK(ncclCommRevoke(comms_[1], 0) == ncclSuccess); }
  ncclResult_t error() const {
    const auto until = std::chrono::steady_clock::now() + 20s;
    ncclResult_t state = ncclSuccess;
    while (state == ncclSuccess && std::chrono::steady_clock::now() < until) {
      CHECK(ncclCommGetAsyncError(comm(), &state) == ncclSuccess);
      std::this_thread::sleep_for(1ms);
    }
    return state;
  }

 private:
  std::array<ncclComm_t, 2> comms_{};
};

class HeldInts : public test::HostCudaArray<int> {
 public:
  HeldInts() : HostCudaArray(held_elements, 1) {}
};

ncclResult_t held_sum(HeldInts& data, ncclComm_t comm, cudaStream_t stream) {
  return ncclAllReduce(data.data(), data.data(), held_elements, ncclInt32, ncclSum, comm, stream);
}

/// What a stream is given: a step of the optimizer's, say.
class Behind {
 public:
  explicit Behind(HostCudaStream& stream) {
    stream.add([ran = ran_] { *ran = true; });
  }
  bool stays_away() const {
    std::this_thread::sleep_for(50ms);
    return !*ran_;
  }

 private:
  std::shared_ptr<std::atomic<bool>> ran_ = std::make_shared<std::atomic<bool>>(false);
};

/// Each ends what an error holds.
struct Ending {
  const char* name;
  void (*end)(Widowed&);
};
constexpr std::array endings{
    Ending{"abort", [](Widowed& ranks) { CHECK(ncclCommAbort(ranks.take()) == ncclSuccess); }},
    Ending{"destroy", [](Widowed& ranks) { CHECK(ncclCommDestroy(ranks.take()) == ncclSuccess); }},
    Ending{"finalize", [](Widowed& ranks) { CHECK(ncclCommFinalize(ranks.comm()) == ncclRemoteError); }},
    Ending{"revoke", [](Widowed& ranks) { CHECK(ncclCommRevoke(ranks.comm(), 0) == ncclSuccess); }},
    Ending{"shrink",
           [](Widowed& ranks) {
             int without = 1;
             ncclComm_t rest = nullptr;
             CHECK(ncclCommShrink(ranks.comm(), &without, 1, &rest, nullptr, NCCL_SHRINK_ABORT) == ncclSuccess);
             CHECK(ncclCommDestroy(rest) == ncclSuccess);
           }},
};

}  // namespace

TEST_CASE("nccl on a GPU: an error holds the stream until the communicator ends, and nobody else") {
  const WithHostCuda gpu;
  for (const Ending& ending : endings) {
    INFO(ending.name);
    HeldInts data, others[2];
    HostCudaStream stream, other_streams[2];
    Widowed ranks;
    CHECK(held_sum(data, ranks.comm(), stream) == ncclSuccess);
    const Behind behind(stream);
    ranks.lose_other();
    CHECK(ranks.error() == ncclRemoteError);
    CHECK(held_sum(data, ranks.comm(), stream) == ncclRemoteError);
    CHECK(behind.stays_away());
    {
      const Widowed both;  // none is lost
      CHECK(held_sum(others[0], both.comm(), other_streams[0]) == ncclSuccess);
      CHECK(held_sum(others[1], both.other(), other_streams[1]) == ncclSuccess);
      for (HostCudaStream& other : other_streams) CHECK(other.done());
      CHECK(others[0].all(2));
    }
    ending.end(ranks);
    CHECK(stream.done_within(1s));
  }
}

TEST_CASE("nccl on a GPU: a call that waits for room in a held stream hides no error of a communicator that does not block") {
  const WithHostCuda gpu;
  HeldInts data;
  HostCudaStream stream(few);
  std::array<ncclComm_t, 2> comms{};
  const auto state_of = [](ncclComm_t comm) {
    ncclResult_t state = ncclInternalError;
    CHECK(ncclCommGetAsyncError(comm, &state) == ncclSuccess);
    return state;
  };
  ncclUniqueId id{};
  ncclConfig_t config = test::nccl_config();
  config.blocking = 0;
  CHECK(ncclGetUniqueId(&id) == ncclSuccess);
  CHECK(ncclGroupStart() == ncclSuccess);
  for (int rank = 0; rank < 2; ++rank) ncclCommInitRankConfig(&comms.at(static_cast<size_t>(rank)), 2, id, rank, &config);
  const ncclResult_t begun = ncclGroupEnd();
  CHECK((begun == ncclSuccess || begun == ncclInProgress));
  for (const ncclComm_t comm : comms) REQUIRE(test::settled(comm) == ncclSuccess);
  const auto full = [] { return simt::HostStream::waiting > 0; };
  bool goes_on = true;
  for (int calls = 0; calls < 2000 && goes_on && !full(); ++calls) {
    held_sum(data, comms[0], stream);
    goes_on = test::becomes([&] { return full() || state_of(comms[0]) == ncclSuccess; });
  }
  CHECK(full());
  CHECK(state_of(comms[0]) == ncclInProgress);
  CHECK(ncclCommRevoke(comms[1], 0) == ncclSuccess);
  CHECK(test::becomes([&] { return state_of(comms[0]) == ncclRemoteError; }));
  CHECK(ncclCommDestroy(comms[0]) == ncclSuccess);
  CHECK(stream.done_within(1s));
  CHECK(ncclCommAbort(comms[1]) == ncclSuccess);
}

TEST_CASE("nccl on a GPU: what had finished before an error holds no stream") {
  const WithHostCuda gpu;
  HeldInts first, second;
  HostCudaStream stream, other;
  Widowed ranks;
  CHECK(held_sum(first, ranks.comm(), stream) == ncclSuccess);
  CHECK(held_sum(second, ranks.other(), other) == ncclSuccess);
  CHECK(stream.done());
  CHECK(other.done());
  ranks.lose_other();
  CHECK(ranks.error() == ncclRemoteError);
  stream.add([] {});
  CHECK(stream.done_within(1s));
  CHECK(first.all(2));
}

TEST_CASE("nccl on a GPU: who waits behind another communicator's error says which to abort") {
  const WithHostCuda gpu;
  const test::KeptLog log(log::Level::warn);
  HeldInts lost, data, other_data;
  HostCudaStream stream, other;
  Widowed failed, healthy;
  CHECK(held_sum(lost, failed.comm(), stream) == ncclSuccess);
  CHECK(held_sum(data, healthy.comm(), stream) == ncclSuccess);
  CHECK(held_sum(other_data, healthy.other(), other) == ncclSuccess);
  failed.lose_other();
  CHECK(failed.error() == ncclRemoteError);
  const ncclComm_t ended = healthy.take();
  ncclResult_t destroyed = ncclInternalError;
  std::thread destroying([&] { destroyed = ncclCommDestroy(ended); });
  const auto named = [](ncclComm_t comm) { return fmt::format("comm {} (rank 0 of 2)", fmt::ptr(comm)); };
  CHECK(test::becomes([&] {
    return log.has(fmt::format("{} waits for a stream, maybe behind what the failure of {} holds", named(ended), named(failed.comm())));
  }));
  CHECK(ncclCommAbort(failed.take()) == ncclSuccess);
  destroying.join();
  CHECK(destroyed == ncclSuccess);
  CHECK(stream.done());
  CHECK(data.all(2));
}

TEST_CASE("nccl on a GPU: a process ends while streams are held, and what is behind does not run") {
  const WithHostCuda gpu;
  // All of these are there when this program ends, which must not wait for them.
  static auto& data = *new std::array<HeldInts, 2>;
  static auto& streams = *new std::array<HostCudaStream, 2>;
  static const auto& ranks = *new std::array<Widowed, 2>;
  for (size_t i = 0; i < 2; ++i) {
    CHECK(held_sum(data.at(i), ranks.at(i).comm(), streams.at(i)) == ncclSuccess);
    streams.at(i).add([] {
      std::fputs("a checkpoint of a wrong sum\n", stderr);
      ::_exit(3);
    });
  }
  CHECK(ncclCommRevoke(ranks[0].other(), 0) == ncclSuccess);  // the other rank of the second only does not come
  CHECK(ranks[0].error() == ncclRemoteError);
}

TEST_CASE("nccl on a GPU: an abort frees who waits for room in a stream that an error holds") {
  const WithHostCuda gpu;
  HeldInts data;
  HostCudaStream stream;
  Widowed ranks;
  std::atomic<int> given{0};
  std::thread giving([&, comm = ranks.comm()] {
    while (held_sum(data, comm, stream) == ncclSuccess) ++given;
  });
  CHECK(test::becomes([] { return simt::HostStream::waiting > 0; }));
  ranks.lose_other();
  CHECK(ranks.error() == ncclRemoteError);
  const int before = given;
  const Behind nothing(stream);
  CHECK(nothing.stays_away());
  CHECK(given == before);
  const auto begin = std::chrono::steady_clock::now();
  CHECK(ncclCommAbort(ranks.take()) == ncclSuccess);
  giving.join();
  CHECK(stream.done_within(1s));
  CHECK(std::chrono::steady_clock::now() - begin < 2s);
}

TEST_CASE("nccl on a GPU: an abort ends a destroy that waits for another rank") {
  const WithHostCuda gpu;
  HeldInts data;
  HostCudaStream stream;
  Widowed ranks;
  CHECK(held_sum(data, ranks.comm(), stream) == ncclSuccess);
  const ncclComm_t ended = ranks.take();
  ncclResult_t destroyed = ncclSuccess;
  std::thread destroying([&] { destroyed = ncclCommDestroy(ended); });
  std::this_thread::sleep_for(50ms);  // as a rule it waits by then; what is tested holds in any case
  CHECK(ncclCommAbort(ended) == ncclSuccess);
  CHECK(stream.done_within(1s));
  ranks.lose_other();
  destroying.join();
  CHECK(destroyed == ncclInvalidArgument);
}

TEST_CASE("nccl on a GPU: a send behind a collective that an error holds is held with it") {
  const WithHostCuda gpu;
  HeldInts data;
  for (const bool in_group : {false, true}) {
    HostCudaStream stream;
    Widowed ranks;
    if (in_group) CHECK(ncclGroupStart() == ncclSuccess);
    CHECK(held_sum(data, ranks.comm(), stream) == ncclSuccess);
    CHECK(ncclSend(data.data(), held_elements, ncclInt32, 1, ranks.comm(), stream) == ncclSuccess);
    if (in_group) CHECK(ncclGroupEnd() == ncclSuccess);
    ranks.lose_other();
    CHECK(ranks.error() == ncclRemoteError);
    CHECK(Behind(stream).stays_away());
    CHECK(ncclCommAbort(ranks.take()) == ncclSuccess);
    CHECK(stream.done_within(1s));
  }
}

TEST_CASE("nccl on a GPU: a send with memory of the host behind a collective that an error holds is an error, not a wait") {
  const WithHostCuda gpu;
  HeldInts data;
  int word = 0;
  for (const bool in_group : {false, true}) {
    HostCudaStream stream;
    Widowed ranks;
    if (!in_group) CHECK(held_sum(data, ranks.comm(), stream) == ncclSuccess);
    std::thread losing([other = ranks.other()] {
      std::this_thread::sleep_for(50ms);  // as a rule the send waits by then
      ncclCommRevoke(other, 0);
    });
    CHECK(ncclGroupStart() == ncclSuccess);
    if (in_group) CHECK(held_sum(data, ranks.comm(), stream) == ncclSuccess);
    CHECK(ncclSend(data.data(), held_elements, ncclInt32, 1, ranks.comm(), stream) == ncclSuccess);
    CHECK(ncclRecv(&word, 1, ncclInt32, 1, ranks.comm(), stream) == ncclSuccess);
    CHECK(ncclGroupEnd() == ncclRemoteError);
    losing.join();
    if (!in_group) CHECK(Behind(stream).stays_away());  // a group of which the error is known by then gives nothing
    CHECK(ncclCommAbort(ranks.take()) == ncclSuccess);
    CHECK(stream.done_within(1s));
  }
}

TEST_CASE("nccl in a graph: an error holds the stream of a replay until an abort, and later replays do nothing") {
  const WithHostCuda gpu;
  HeldInts data, other;
  std::array<HostCudaStream, 2> streams;
  Widowed ranks;
  HostCudaStream& stream = streams[0];
  std::array<std::shared_ptr<simt::HostGraph>, 2> graphs;
  for (size_t r = 0; r < 2; ++r) {
    streams.at(r).begin_capture();
    CHECK(held_sum(r == 0 ? data : other, r == 0 ? ranks.comm() : ranks.other(), streams.at(r)) == ncclSuccess);
    graphs.at(r) = streams.at(r).end_capture();
  }
  for (size_t r = 0; r < 2; ++r) streams.at(r).launch(graphs.at(r));
  for (HostCudaStream& each : streams) CHECK(each.done());
  CHECK(data.all(2));
  stream.launch(graphs[0]);
  const Behind behind(stream);
  ranks.lose_other();
  CHECK(ranks.error() == ncclRemoteError);
  CHECK(behind.stays_away());
  const ncclComm_t ended = ranks.take();
  CHECK(ncclCommAbort(ended) == ncclSuccess);
  CHECK(stream.done_within(1s));
  stream.launch(graphs[0]);
  CHECK(stream.done_within(1s));
}
