// gyre beside NCCL on GPU memory: aborts, errors that hold streams, and ends that come while another thread calls.
#include <chrono>
#include <future>

#include "plugin/nccl/wrap_comm.h"
#include "test/becomes.h"
#include "test/catch.h"
#include "test/plugin/nccl_beside_fake.h"

using namespace gyre;
using namespace std::chrono_literals;
using test::BesideFake;
using test::GpuFloats;
using test::HostCudaStream;
using test::many;
using test::newly_to_nccl;
using test::reduce;
using test::run_nccl;

TEST_CASE("wrap on a GPU: an abort frees the streams of both engines within a second, and the other rank hears of it") {
  const BesideFake beside;
  const ncclUniqueId id = test::new_id();
  const auto aborting = [&]() -> std::string {
    ncclComm_t comm = nullptr;
    NCCL_OK(ncclCommInitRank(&comm, 2, id, 0));
    GpuFloats data(many, 1), few(1, 1);
    HostCudaStream stream, other;
    NCCL_OK(reduce(data, comm, stream));
    NCCL_OK(reduce(few, comm, other, 1));  // NCCL's, behind gyre's
    std::this_thread::sleep_for(50ms);     // as a rule gyre's waits by then
    const auto begin = std::chrono::steady_clock::now();
    NCCL_OK(ncclCommAbort(comm));
    return stream.done() && other.done() && std::chrono::steady_clock::now() - begin < 1s ? "" : "the streams are not free";
  };
  const auto hearing = [&]() -> std::string {
    ncclComm_t comm = nullptr;
    NCCL_OK(ncclCommInitRank(&comm, 2, id, 1));
    GpuFloats data(many, 1);
    HostCudaStream stream;
    const auto until = std::chrono::steady_clock::now() + 20s;
    ncclResult_t state = ncclSuccess;
    while (state == ncclSuccess && std::chrono::steady_clock::now() < until) {
      NCCL_OK(ncclCommGetAsyncError(comm, &state));
      std::this_thread::sleep_for(1ms);
    }
    const std::string said = ncclGetLastError(comm);
    if (state != ncclRemoteError) return "state " + std::to_string(state);
    if (said.find("rank 0 has given up") == std::string::npos) return "the last error is: " + said;
    NCCL_GIVES(ncclRemoteError, reduce(data, comm, stream));
    NCCL_OK(ncclCommFinalize(comm));
    NCCL_OK(ncclCommDestroy(comm));
    return stream.done() ? "" : "the stream does not end";
  };
  auto other = std::async(std::launch::async, hearing);
  CHECK(aborting() == "");
  CHECK(other.get() == "");
}

TEST_CASE("wrap on a GPU: an error holds the stream until the communicator ends") {
  const BesideFake beside;
  for (const auto& end : {ncclCommAbort, ncclCommDestroy, ncclCommFinalize}) {
    GpuFloats data(many, 1);
    HostCudaStream stream;
    std::array<ncclComm_t, 2> comms{};
    REQUIRE(ncclCommInitAll(comms.data(), 2, nullptr) == ncclSuccess);
    CHECK(reduce(data, comms[0], stream) == ncclSuccess);
    std::atomic<bool> behind{false};
    stream.add([&] { behind = true; });
    CHECK(ncclCommAbort(comms[1]) == ncclSuccess);
    const auto until = std::chrono::steady_clock::now() + 20s;
    ncclResult_t state = ncclSuccess;
    while (state == ncclSuccess && std::chrono::steady_clock::now() < until) {
      CHECK(ncclCommGetAsyncError(comms[0], &state) == ncclSuccess);
      std::this_thread::sleep_for(1ms);
    }
    CHECK(state == ncclRemoteError);
    std::this_thread::sleep_for(50ms);
    CHECK(!behind);
    CHECK(end(comms[0]) == ncclSuccess);
    CHECK(stream.done_within(1s));
    if (end == ncclCommFinalize) CHECK(ncclCommDestroy(comms[0]) == ncclSuccess);
  }
}

TEST_CASE("wrap on a GPU: NCCL is given no communicator that another thread ends while it ends") {
  const BesideFake beside;
  const auto by_other = GENERATE(ncclCommAbort, ncclCommDestroy);
  static std::atomic<bool> waited{false}, ended_before{false};
  for (const auto& end : {ncclCommFinalize, ncclCommDestroy}) {
    waited = ended_before = false;
    GpuFloats data(many, 1);
    HostCudaStream stream;
    std::array<ncclComm_t, 2> comms{};
    REQUIRE(ncclCommInitAll(comms.data(), 2, nullptr) == ncclSuccess);
    log::set_sink([](log::Level, std::string_view line) {
      if (!line.starts_with("ncclComm") || waited.exchange(true)) return;
      test::becomes([] { return ended_before.load(); });  // after gyre's part, and before NCCL's
    });
    CHECK(reduce(data, comms[0], stream) == ncclSuccess);
    auto ended = std::async(std::launch::async, [&] { return end(comms[0]); });
    CHECK(ncclCommAbort(comms[1]) == ncclSuccess);
    CHECK(test::becomes([] { return waited.load(); }));
    CHECK(by_other(comms[0]) == ncclSuccess);
    ended_before = true;
    CHECK(ended.get() == ncclInvalidArgument);
    CHECK(stream.done_within(1s));
    log::set_sink(nullptr);
  }
}

TEST_CASE("wrap on a GPU: NCCL ends no group of a communicator that another thread has ended meanwhile") {
  BesideFake beside;
  const auto end = GENERATE(ncclCommAbort, ncclCommDestroy);
  const bool refused = GENERATE(false, true);
  static std::atomic<bool> waits{false}, goes_on{false};
  waits = goes_on = false;
  static const auto wait = [] {
    if (!waits.exchange(true)) test::becomes([] { return goes_on.load(); });
  };
  GpuFloats data(many, 1), more(many, 1), message(1, 1);
  HostCudaStream stream, other, third;
  std::array<ncclComm_t, 2> comms{};
  REQUIRE(ncclCommInitAll(comms.data(), 2, nullptr) == ncclSuccess);
  auto known = plugin::nccl::wrap::beside(comms[0]);
  const auto group = [&] {
    ncclGroupStart();
    ncclSend(message.data(), 1, ncclFloat32, 1, comms[0], third);
    if (refused)
      ncclAllReduce(nullptr, message.data(), 1, ncclFloat32, ncclSum, comms[0], third);  // by NCCL
    else
      reduce(data, comms[0], stream);
    return ncclGroupEnd();
  };
  log::set_level(log::Level::info);
  log::set_sink([](log::Level, std::string_view line) {
    if (line.find("by gyre") != std::string_view::npos) wait();
  });
  if (refused) BesideFake::hooks().say = [](const char* line) { std::string_view(line) == "ncclGroupEnd" ? wait() : void(); };
  auto grouped = std::async(std::launch::async, group);
  CHECK(test::becomes([] { return waits.load(); }));
  if (!refused) CHECK(reduce(more, comms[1], other) == ncclSuccess);
  auto ended = std::async(std::launch::async, [&] { return end(comms[0]); });
  CHECK(test::becomes([&] { return !known->lives(); }));
  known.reset();
  std::this_thread::sleep_for(10ms);  // as a rule NCCL frees it by then, if it does; what is tested holds in any case
  goes_on = true;
  CHECK(grouped.get() != ncclSuccess);
  CHECK(ended.get() == ncclSuccess);
  CHECK(ncclCommAbort(comms[1]) == ncclSuccess);
  CHECK((stream.done_within(1s) && other.done_within(1s) && third.done_within(1s)));
  log::set_sink(nullptr);
  log::set_level(log::Level::warn);
}

TEST_CASE("wrap on a GPU: a group that is only simulated says that a communicator of its calls was aborted") {
  const BesideFake beside;
  const plugin::nccl::Table whole = plugin::nccl::wrap::real();
  plugin::nccl::Table newer = whole;
  newer.ncclGroupSimulateEnd = [](ncclSimInfo_t*) { return plugin::nccl::wrap::real().ncclGroupEnd(); };
  plugin::nccl::wrap::set_up(newer, test::configured({"GYRE_COLLECTIVES=all_reduce"}));
  GpuFloats data(many, 1);
  HostCudaStream stream;
  std::array<ncclComm_t, 2> comms{};
  REQUIRE(ncclCommInitAll(comms.data(), 2, nullptr) == ncclSuccess);
  CHECK(ncclGroupStart() == ncclSuccess);
  CHECK(reduce(data, comms[0], stream) == ncclSuccess);
  for (const ncclComm_t comm : comms) CHECK(ncclCommAbort(comm) == ncclSuccess);
  CHECK(ncclGroupSimulateEnd(nullptr) == ncclInvalidArgument);
  plugin::nccl::wrap::set_up(whole, test::configured({}));
}

TEST_CASE("wrap on a GPU: where CUDA fails while a call on host memory waits, NCCL's is the call, and a warning says why") {
  const BesideFake beside({"GYRE_COLLECTIVES=all_reduce", "GYRE_DEVICE=host"});
  const test::KeptLog log;
  CHECK(run_nccl(2, [](ncclComm_t comm, int rank) -> std::string {
          std::vector<float> data(many, 1);
          HostCudaStream stream;
          NCCL_OK(ncclGroupStart());
          NCCL_OK(ncclAllReduce(data.data(), data.data(), many, ncclFloat32, ncclSum, comm, stream));
          test::break_host_stream(stream, rank == 0);
          NCCL_GIVES(rank == 0 ? ncclUnhandledCudaError : ncclSuccess, ncclGroupEnd());
          test::break_host_stream(stream, false);
          if (const auto calls = newly_to_nccl(); calls != "GroupStart GroupEnd AllReduce ") return "to NCCL: " + calls;
          return stream.done() && data[0] == 2 ? "" : "a wrong sum";
        }) == "");
  CHECK(log.count("rank 0 of 2: NCCL runs a call before which CUDA has failed: ") == 1);
}

TEST_CASE("wrap on a GPU: an abort ends a call on host memory that waits for its stream") {
  const BesideFake beside({"GYRE_COLLECTIVES=all_reduce", "GYRE_DEVICE=host"});
  std::vector<float> data(many, 1);
  HostCudaStream stream;
  std::promise<void> gate;
  stream.add([opened = gate.get_future().share()] { opened.wait(); });
  std::array<ncclComm_t, 2> comms{};
  REQUIRE(ncclCommInitAll(comms.data(), 2, nullptr) == ncclSuccess);
  const int before = test::host_marks_used();
  auto called =
      std::async(std::launch::async, [&] { return ncclAllReduce(data.data(), data.data(), many, ncclFloat32, ncclSum, comms[0], stream); });
  CHECK(test::becomes([&] { return test::host_marks_used() > before; }));
  CHECK(ncclCommAbort(comms[0]) == ncclSuccess);
  CHECK(called.wait_for(20s) == std::future_status::ready);
  gate.set_value();
  CHECK(called.get() == ncclRemoteError);
  CHECK(ncclCommAbort(comms[1]) == ncclSuccess);
}

TEST_CASE("wrap on a GPU: a communicator is destroyed when what it was given has ended") {
  const BesideFake beside;
  CHECK(run_nccl(2, [](ncclComm_t comm, int rank) -> std::string {
          GpuFloats data(many, 1), few(1, 1);
          HostCudaStream stream, other;
          stream.add([rank] { std::this_thread::sleep_for(20ms * rank); });
          NCCL_OK(reduce(data, comm, stream));
          NCCL_OK(reduce(few, comm, other, 1));
          NCCL_OK(ncclCommFinalize(comm));
          return data.all(2) && few.all(2) ? "" : "it has not ended";
        }) == "");
}
