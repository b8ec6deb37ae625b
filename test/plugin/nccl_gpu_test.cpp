// NCCL's interface by gyre alone on GPU memory: in the order of streams, without waiting.
#include <algorithm>
#include <cstdlib>
#include <future>

#include "test/catch.h"
#include "test/folder.h"
#include "test/kept_log.h"
#include "test/plugin/host_cuda.h"
#include "test/plugin/nccl_ranks.h"

using namespace gyre;
using test::HostCudaMemory;
using test::HostCudaStream;
using test::run_nccl;
using test::WithHostCuda;
using namespace std::chrono_literals;

namespace {

constexpr size_t elements = 3000;

using Floats = test::HostCudaArray<float>;

}  // namespace

TEST_CASE("nccl on a GPU: collectives come in the order of the stream, and calls don't wait") {
  const WithHostCuda gpu;
  CHECK(run_nccl(3, [](ncclComm_t comm, int rank) -> std::string {
          Floats data(elements, 0);
          std::promise<void> calls;
          bool waited = false;
          HostCudaStream stream;
          stream.add([&, made = calls.get_future().share()] {
            waited = made.wait_for(20s) == std::future_status::timeout;
            std::fill_n(data.data(), elements, static_cast<float>(rank + 1));
          });
          NCCL_OK(ncclAllReduce(data.data(), data.data(), elements, ncclFloat32, ncclSum, comm, stream));
          NCCL_OK(ncclAllReduce(data.data(), data.data(), elements, ncclFloat32, ncclMax, comm, stream));
          calls.set_value();
          if (!stream.done()) return "the stream does not end";
          if (waited) return "a call waited for the stream";
          ncclResult_t state = ncclInternalError;
          NCCL_OK(ncclCommGetAsyncError(comm, &state));
          return data.all(6) && state == ncclSuccess ? "" : "a wrong sum";
        }) == "");
}

TEST_CASE("nccl on a GPU: every collective") {
  const WithHostCuda gpu;
  CHECK(run_nccl(2, [](ncclComm_t comm, int rank) -> std::string {
          HostCudaStream stream;
          const auto mine = static_cast<float>(rank + 1);
          Floats one(elements, mine), two(2 * elements, mine), single(elements, 0), both(2 * elements, 0);
          const auto halves = [&](float a, float b) {
            return stream.done() && std::all_of(both.data(), both.data() + elements, [=](float v) { return v == a; }) &&
                   std::all_of(both.data() + elements, both.data() + 2 * elements, [=](float v) { return v == b; });
          };
          NCCL_OK(ncclAllGather(one.data(), both.data(), elements, ncclFloat32, comm, stream));
          if (!halves(1, 2)) return "all-gather";
          NCCL_OK(ncclReduceScatter(two.data(), single.data(), elements, ncclFloat32, ncclSum, comm, stream));
          if (!stream.done() || !single.all(3)) return "reduce-scatter";
          NCCL_OK(ncclAlltoAll(two.data(), both.data(), elements, ncclFloat32, comm, stream));
          if (!halves(1, 2)) return "all-to-all";
          NCCL_OK(ncclReduce(one.data(), single.data(), elements, ncclFloat32, ncclProd, 1, comm, stream));
          if (!stream.done() || (rank == 1 && !single.all(2))) return "reduce";
          NCCL_OK(ncclBroadcast(one.data(), single.data(), elements, ncclFloat32, 1, comm, stream));
          if (!stream.done() || !single.all(2)) return "broadcast";
          std::fill_n(both.data(), 2 * elements, 0.0F);
          NCCL_OK(ncclGather(one.data(), both.data(), elements, ncclFloat32, 0, comm, stream));
          if (!stream.done() || (rank == 0 && !halves(1, 2))) return "gather";
          NCCL_OK(ncclScatter(two.data(), single.data(), elements, ncclFloat32, 0, comm, stream));
          if (!stream.done() || !single.all(1)) return "scatter";
          NCCL_OK(ncclAllReduce(nullptr, nullptr, 0, ncclFloat32, ncclSum, comm, stream));
          return "";
        }) == "");
}

TEST_CASE("nccl on a GPU: sends and receives go by the host, after what their streams were given") {
  const WithHostCuda gpu;
  CHECK(run_nccl(3, [](ncclComm_t comm, int rank) -> std::string {
          HostCudaStream stream;
          Floats out(elements, 0), in(elements, 0), sum(elements, 1);
          stream.add([&] {
            std::this_thread::sleep_for(20ms);
            std::fill_n(out.data(), elements, static_cast<float>(rank));
          });
          NCCL_OK(ncclGroupStart());
          NCCL_OK(ncclSend(out.data(), elements, ncclFloat32, (rank + 1) % 3, comm, stream));
          NCCL_OK(ncclRecv(in.data(), elements, ncclFloat32, (rank + 2) % 3, comm, stream));
          NCCL_OK(ncclAllReduce(sum.data(), sum.data(), elements, ncclFloat32, ncclSum, comm, stream));
          NCCL_OK(ncclGroupEnd());
          if (!stream.done()) return "the stream does not end";
          return in.all(static_cast<float>((rank + 2) % 3)) && sum.all(3) ? "" : "wrong data";
        }) == "");
}

TEST_CASE("nccl on a GPU: communicators of devices that CUDA does not have are refused") {
  const WithHostCuda gpu;
  std::array<ncclComm_t, 2> comms{};
  const std::array<int, 2> devices{0, test::no_device};
  CHECK(ncclCommInitAll(comms.data(), 2, devices.data()) == ncclUnhandledCudaError);
}

TEST_CASE("nccl on a GPU: one thread gives all ranks their calls") {
  const WithHostCuda gpu;
  constexpr int ranks = 3;
  std::array<ncclComm_t, ranks> comms{};
  REQUIRE(ncclCommInitAll(comms.data(), ranks, nullptr) == ncclSuccess);
  std::array<HostCudaStream, ranks> streams;
  std::vector<std::unique_ptr<Floats>> data;
  for (int rank = 0; rank < ranks; ++rank) data.push_back(std::make_unique<Floats>(elements, static_cast<float>(rank + 1)));
  REQUIRE(ncclGroupStart() == ncclSuccess);
  for (size_t r = 0; r < ranks; ++r)
    CHECK(ncclAllReduce(data[r]->data(), data[r]->data(), elements, ncclFloat32, ncclSum, comms.at(r), streams.at(r)) == ncclSuccess);
  REQUIRE(ncclGroupEnd() == ncclSuccess);
  for (size_t r = 0; r < ranks; ++r) {
    CHECK(streams.at(r).done());
    CHECK(data[r]->all(6));
  }
  for (const ncclComm_t comm : comms) CHECK(ncclCommDestroy(comm) == ncclSuccess);
}

TEST_CASE("nccl on a GPU: a pre-multiplied sum reads its scalar from the GPU") {
  const WithHostCuda gpu;
  CHECK(run_nccl(2, [](ncclComm_t comm, int rank) -> std::string {
          HostCudaStream stream;
          Floats data(elements, 1), scalar(1, 0);
          stream.add([&] { *scalar.data() = static_cast<float>(rank + 2); });
          ncclRedOp_t op{};
          NCCL_OK(ncclRedOpCreatePreMulSum(&op, scalar.data(), ncclFloat32, ncclScalarDevice, comm));
          NCCL_OK(ncclAllReduce(data.data(), data.data(), elements, ncclFloat32, op, comm, stream));
          NCCL_OK(ncclRedOpDestroy(op, comm));
          return stream.done() && data.all(5) ? "" : "a wrong sum";
        }) == "");
}

TEST_CASE("nccl on a GPU: communicators that are split off reduce there, too") {
  const WithHostCuda gpu;
  CHECK(run_nccl(4, [](ncclComm_t comm, int rank) -> std::string {
          HostCudaStream stream;
          ncclComm_t part = nullptr;
          NCCL_OK(ncclCommSplit(comm, rank % 2, rank, &part, nullptr));
          Floats data(elements, static_cast<float>(rank));
          NCCL_OK(ncclAllReduce(data.data(), data.data(), elements, ncclFloat32, ncclSum, part, stream));
          const bool right = stream.done() && data.all(rank % 2 == 0 ? 2 : 4);
          NCCL_OK(ncclCommDestroy(part));
          return right ? "" : "a wrong sum";
        }) == "");
}

TEST_CASE("nccl on a GPU: who asks for errors asks no stream") {
  const WithHostCuda gpu;
  std::atomic<int> ready{0}, asked{-1};
  CHECK(run_nccl(2, [&](ncclComm_t comm, int rank) -> std::string {
          HostCudaStream stream;
          Floats data(elements, 1);
          std::promise<void> gate;
          stream.add([opened = gate.get_future().share()] { opened.wait(); });
          NCCL_OK(ncclAllReduce(data.data(), data.data(), elements, ncclFloat32, ncclSum, comm, stream));
          ++ready;
          if (rank == 0) {
            while (ready < 2) std::this_thread::yield();
            const int before = simt::HostStream::asked;
            ncclResult_t state = ncclSuccess;
            for (int i = 0; i < 100; ++i) ncclCommGetAsyncError(comm, &state);
            asked = state == ncclSuccess ? simt::HostStream::asked - before : 1000;
          }
          while (asked < 0) std::this_thread::yield();
          gate.set_value();
          return stream.done() && data.all(2) ? "" : "a wrong sum";
        }) == "");
  CHECK(asked == 0);
}

TEST_CASE("nccl on a GPU: an abort frees the stream within a second, and the other rank learns of it") {
  const WithHostCuda gpu;
  const ncclUniqueId id = test::new_id();
  std::array<std::string, 2> words;
  const auto rank_main = [&](int rank) -> std::string {
    ncclComm_t comm = nullptr;
    NCCL_OK(ncclCommInitRank(&comm, 2, id, rank));
    HostCudaStream stream;
    Floats data(elements, 1);
    if (rank == 0) {
      NCCL_OK(ncclAllReduce(data.data(), data.data(), elements, ncclFloat32, ncclSum, comm, stream));
      std::this_thread::sleep_for(50ms);
      const auto begin = std::chrono::steady_clock::now();
      NCCL_OK(ncclCommAbort(comm));
      const bool freed = stream.done() && std::chrono::steady_clock::now() - begin < 1s;
      return freed ? "" : "the stream is not free";
    }
    const auto until = std::chrono::steady_clock::now() + 20s;
    ncclResult_t state = ncclSuccess;
    while (state == ncclSuccess && std::chrono::steady_clock::now() < until) {
      NCCL_OK(ncclCommGetAsyncError(comm, &state));
      std::this_thread::sleep_for(1ms);
    }
    const std::string said = ncclGetLastError(comm);
    NCCL_OK(ncclCommAbort(comm));
    if (said.find("rank 0 has given up") == std::string::npos) return "the last error is: " + said;
    return state == ncclRemoteError ? "" : "state " + std::to_string(state);
  };
  std::thread other([&] { words[1] = rank_main(1); });
  words[0] = rank_main(0);
  other.join();
  CHECK(words[0] == "");
  CHECK(words[1] == "");
}

TEST_CASE("nccl on a GPU: a communicator is aborted whose stream waits for another one's") {
  const WithHostCuda gpu;
  const std::array ids{test::new_id(), test::new_id()};
  std::promise<void> over;
  const auto rank_main = [&](int rank) -> std::string {
    std::array<ncclComm_t, 2> comms{};
    for (size_t i = 0; i < 2; ++i) NCCL_OK(ncclCommInitRank(&comms.at(i), 2, ids.at(i), rank));
    std::string word;
    if (rank == 1) {
      over.get_future().wait();
    } else {
      HostCudaStream stream;
      Floats data(elements, 1);
      for (const ncclComm_t comm : {comms[1], comms[0]})
        NCCL_OK(ncclAllReduce(data.data(), data.data(), elements, ncclFloat32, ncclSum, comm, stream));
      const auto begin = std::chrono::steady_clock::now();
      for (const ncclComm_t comm : comms) NCCL_OK(ncclCommAbort(comm));
      word = stream.done() && std::chrono::steady_clock::now() - begin < 2s ? "" : "the stream is not free";
      over.set_value();
    }
    if (rank == 1) {
      for (const ncclComm_t comm : comms) NCCL_OK(ncclCommAbort(comm));
    }
    return word;
  };
  std::string other_word;
  std::thread other([&] { other_word = rank_main(1); });
  CHECK(rank_main(0) == "");
  other.join();
  CHECK(other_word == "");
}

TEST_CASE("nccl on a GPU: one thread's group may hold more than streams do, and sends behind collectives") {
  const WithHostCuda gpu;
  std::array<ncclComm_t, 2> comms{};
  REQUIRE(ncclCommInitAll(comms.data(), 2, nullptr) == ncclSuccess);
  std::array<HostCudaStream, 2> streams;
  Floats first(elements, 1), second(elements, 2);
  const std::array<Floats*, 2> data{&first, &second};
  REQUIRE(ncclGroupStart() == ncclSuccess);
  for (int i = 0; i < 400; ++i) {
    for (size_t r = 0; r < 2; ++r) CHECK(ncclBcast(data.at(r)->data(), 100, ncclFloat32, 0, comms.at(r), streams.at(r)) == ncclSuccess);
  }
  CHECK(ncclSend(first.data(), 100, ncclFloat32, 1, comms[0], streams[0]) == ncclSuccess);
  CHECK(ncclRecv(second.data() + 100, 100, ncclFloat32, 0, comms[1], streams[1]) == ncclSuccess);
  REQUIRE(ncclGroupEnd() == ncclSuccess);
  for (HostCudaStream& stream : streams) CHECK(stream.done());
  CHECK(std::all_of(second.data(), second.data() + 200, [](float v) { return v == 1; }));
  for (const ncclComm_t comm : comms) CHECK(ncclCommDestroy(comm) == ncclSuccess);
}

TEST_CASE("nccl on a GPU: one thread's group may hold more than streams do, rank by rank") {
  const WithHostCuda gpu;
  constexpr int ranks = 3, calls = 250;
  std::array<ncclComm_t, ranks> comms{};
  REQUIRE(ncclCommInitAll(comms.data(), ranks, nullptr) == ncclSuccess);
  std::vector<std::unique_ptr<Floats>> data;
  for (int rank = 0; rank < ranks; ++rank) data.push_back(std::make_unique<Floats>(elements, static_cast<float>(rank + 1)));
  std::array<HostCudaStream, ranks> streams;
  auto given = std::async(std::launch::async, [&]() -> std::string {
    NCCL_OK(ncclGroupStart());
    for (size_t r = 0; r < ranks; ++r) {
      for (int i = 0; i < calls; ++i)
        NCCL_OK(ncclAllReduce(data[r]->data(), data[r]->data(), 10, ncclFloat32, ncclMax, comms.at(r), streams.at(r)));
    }
    NCCL_OK(ncclGroupEnd());
    return "";
  });
  const bool returned = given.wait_for(120s) == std::future_status::ready;
  if (!returned) {
    for (const ncclComm_t comm : comms) CHECK(ncclCommAbort(comm) == ncclSuccess);  // or the test would not end
    given.wait();
    FAIL("the group does not end");
  }
  CHECK(given.get() == "");
  for (size_t r = 0; r < ranks; ++r) {
    CHECK(streams.at(r).done());
    CHECK(std::all_of(data[r]->data(), data[r]->data() + 10, [](float v) { return v == ranks; }));
  }
  for (const ncclComm_t comm : comms) CHECK(ncclCommDestroy(comm) == ncclSuccess);
}

TEST_CASE("nccl on a GPU: what can't be is an error that says so") {
  const WithHostCuda gpu;
  CHECK(run_nccl(2, [](ncclComm_t comm, int) -> std::string {
          HostCudaStream stream;
          Floats on_gpu(elements, 1);
          std::vector<float> host(elements, 1);
          NCCL_GIVES(ncclInvalidUsage, ncclAllReduce(on_gpu.data(), host.data(), elements, ncclFloat32, ncclSum, comm, stream));
          ncclRedOp_t op{};
          NCCL_GIVES(ncclInvalidUsage, ncclRedOpCreatePreMulSum(&op, on_gpu.data(), ncclFloat32, ncclScalarHostImmediate, comm));
          NCCL_OK(ncclRedOpCreatePreMulSum(&op, on_gpu.data(), ncclFloat32, ncclScalarDevice, comm));
          NCCL_GIVES(ncclInvalidUsage, ncclAllReduce(host.data(), host.data(), elements, ncclFloat32, op, comm, stream));
          NCCL_OK(ncclRedOpDestroy(op, comm));
          NCCL_GIVES(ncclInvalidArgument, ncclSend(on_gpu.data(), size_t{1} << 44, ncclFloat32, 0, comm, stream));
          NCCL_GIVES(ncclInvalidArgument, ncclRecv(on_gpu.data(), size_t{1} << 44, ncclFloat32, 0, comm, stream));
          // Memory of the host is still reduced, when the call returns.
          NCCL_OK(ncclAllReduce(host.data(), host.data(), elements, ncclFloat32, ncclSum, comm, stream));
          return host[0] == 2 && host[elements - 1] == 2 ? "" : "a wrong sum of the host's";
        }) == "");
}

TEST_CASE("nccl on a GPU: ranks without one that works leave GPU memory refused, and the host's reduced") {
  const WithHostCuda gpu;
  test::break_host_gpu(test::every_gpu);
  CHECK(run_nccl(2, [](ncclComm_t comm, int) -> std::string {
          HostCudaStream stream;
          Floats on_gpu(elements, 1);
          std::vector<float> host(elements, 1);
          NCCL_GIVES(ncclInvalidUsage, ncclAllReduce(on_gpu.data(), on_gpu.data(), elements, ncclFloat32, ncclSum, comm, stream));
          NCCL_OK(ncclAllReduce(host.data(), host.data(), elements, ncclFloat32, ncclSum, comm, stream));
          return host[0] == 2 ? "" : "a wrong sum";
        }) == "");
  test::break_host_gpu(test::no_gpu);
}

TEST_CASE("nccl on a GPU: where the GPU is decides no more than the ways of messages") {
  const WithHostCuda gpu;
  for (const char* address : {"0000:FE:1F.7", "on the desk"}) {  // this machine has no GPU there
    test::place_host_gpu(address);
    CHECK(run_nccl(2, [](ncclComm_t comm, int) -> std::string {
            HostCudaStream stream;
            Floats data(elements, 1);
            NCCL_OK(ncclAllReduce(data.data(), data.data(), elements, ncclFloat32, ncclSum, comm, stream));
            return stream.done() && data.all(2) ? "" : "a wrong sum";
          }) == "");
  }
  test::place_host_gpu("");
}

TEST_CASE(
    "nccl by a file: a GPU that the system does not show is where NCCL_TOPO_FILE has it, and the map is dumped by the rank asked for") {
  const WithHostCuda gpu;
  const test::Folder folder;
  const std::string dumped = folder / "dumped.xml";
  ::setenv("NCCL_TOPO_DUMP_FILE", dumped.c_str(), 1);
  ::setenv("NCCL_TOPO_DUMP_FILE_RANK", "0x1", 1);  // as NCCL reads numbers
  test::place_host_gpu("0000:FE:1F.7");            // as in desk.xml
  {
    const test::KeptLog log;
    const auto one = [](ncclComm_t comm, int) -> std::string {
      HostCudaStream stream;
      Floats data(elements, 1);
      NCCL_OK(ncclAllReduce(data.data(), data.data(), elements, ncclFloat32, ncclSum, comm, stream));
      return stream.done() && data.all(2) ? "" : "a wrong sum";
    };
    CHECK(run_nccl(2, one) == "");
    CHECK(log.count("taken for this machine's map") == 1);
    CHECK(log.has("GPUs: 1 channel, ranks in the order 0 1"));
    CHECK_FALSE(log.has("does not know where its GPU is"));
  }
  test::place_host_gpu("");
  CHECK(test::contains(test::content(dumped), "busid=\"0000:fe:1f.7\" class=\"0x030200\""));
  const std::string by_nobody = folder / "by_nobody.xml";
  ::setenv("NCCL_TOPO_DUMP_FILE", by_nobody.c_str(), 1);
  for (const char* no_rank : {"-1", "0x2"}) {
    ::setenv("NCCL_TOPO_DUMP_FILE_RANK", no_rank, 1);
    CHECK(run_nccl(2, [](ncclComm_t, int) { return std::string(); }) == "");
  }
  CHECK(test::content(by_nobody).empty());
  ::unsetenv("NCCL_TOPO_DUMP_FILE");
  ::unsetenv("NCCL_TOPO_DUMP_FILE_RANK");
}
