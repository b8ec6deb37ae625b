// gyre beside NCCL on GPU memory: who may not, votes that fail, and calls that are refused.
#include <new>
#include <tuple>

#include "plugin/nccl/errors.h"
#include "plugin/nccl/missing.h"
#include "plugin/nccl/wrap_comm.h"
#include "test/becomes.h"
#include "test/catch.h"
#include "test/plugin/nccl_beside_fake.h"
#include "test/text.h"

using namespace gyre;
using namespace std::chrono_literals;
using test::BesideFake;
using test::GpuFloats;
using test::HostCudaStream;
using test::many;
using test::newly_to_nccl;
using test::reduce;
using test::run_nccl;

namespace {

/// All ranks' calls are NCCL's, and right.
std::string by_nccl(ncclComm_t comm, int ranks) {
  GpuFloats data(many, 1);
  HostCudaStream stream;
  NCCL_OK(reduce(data, comm, stream));
  if (const auto calls = newly_to_nccl(); calls != "AllReduce ") return "to NCCL: " + calls;
  return stream.done() && data.all(static_cast<float>(ranks)) ? "" : "a wrong sum";
}

}  // namespace

TEST_CASE("wrap on a GPU: a rank whose GPU gyre can't use leaves all to NCCL, and is named") {
  const BesideFake beside;
  const test::KeptLog log;
  test::break_host_gpu(1);
  CHECK(run_nccl(3, [](ncclComm_t comm, int) { return by_nccl(comm, 3); }) == "");
  test::break_host_gpu(test::no_gpu);
  CHECK(log.count("NCCL runs all calls of this communicator: rank 1: the GPU has fallen off the bus") == 3);
}

TEST_CASE("wrap on a GPU: no memory to say why a communicator is NCCL's is no end of the process") {
  const BesideFake beside;
  log::set_sink([](log::Level, std::string_view line) {
    if (line.find("NCCL runs all calls") != std::string_view::npos) throw std::bad_alloc();
  });
  test::break_host_gpu(1);
  CHECK(run_nccl(2, [](ncclComm_t comm, int) { return by_nccl(comm, 2); }) == "");
  test::break_host_gpu(test::no_gpu);
  log::set_sink(nullptr);
}

TEST_CASE("wrap on a GPU: what options leave no plan for is NCCL's, and ordered sums are gyre's") {
  const BesideFake beside({"GYRE_COLLECTIVES=all_reduce", "GYRE_ALGORITHM=double_tree", "GYRE_CHANNELS=1"});
  const test::KeptLog log;
  CHECK(run_nccl(2, [](ncclComm_t comm, int) { return by_nccl(comm, 2); }) == "");
  CHECK(log.count("NCCL runs all calls of this communicator: rank 0: double_tree needs 2 channels, GYRE_CHANNELS is 1") == 2);
  BesideFake::set_up({"GYRE_COLLECTIVES=all_reduce", "GYRE_NUMERICS=ordered"});
  CHECK(run_nccl(2, [](ncclComm_t comm, int) -> std::string {
          GpuFloats data(many, 1);
          HostCudaStream stream;
          NCCL_OK(reduce(data, comm, stream));
          return newly_to_nccl().empty() && stream.done() && data.all(2) ? "" : "not by gyre";
        }) == "");
}

TEST_CASE("wrap on a GPU: a rank that fails in the midst of it leaves all to NCCL, and is named") {
  const BesideFake beside;
  const test::KeptLog log;
  for (const int failing : {0, 2}) {
    test::fill_host_gpu(failing);
    CHECK(run_nccl(3, [](ncclComm_t comm, int) { return by_nccl(comm, 3); }) == "");
    CHECK(log.count("NCCL runs all calls of this communicator: rank " + std::to_string(failing) + ": the GPU's memory is full") == 3);
  }
  test::fill_host_gpu(test::no_gpu);
}

TEST_CASE("wrap on a GPU: a child whose ranks can't all have a GPU is NCCL's, and its parent stays") {
  const BesideFake beside;
  std::atomic<int> there{0};
  CHECK(run_nccl(4, [&](ncclComm_t comm, int rank) -> std::string {
          ++there;
          if (rank == 0) {
            while (there < 4) std::this_thread::yield();
            test::break_host_gpu(1);  // the last one's of a half
          }
          ncclComm_t half = nullptr;
          GpuFloats data(many, 1);
          HostCudaStream stream;
          NCCL_OK(reduce(data, comm, stream));
          if (!stream.done()) return "the stream does not end";
          NCCL_OK(ncclCommSplit(comm, rank / 2, rank, &half, nullptr));
          if (auto word = by_nccl(half, 2); !word.empty()) return word;
          NCCL_OK(ncclCommDestroy(half));
          NCCL_OK(reduce(data, comm, stream));
          return newly_to_nccl().empty() && stream.done() && data.all(16) ? "" : "a wrong sum of the parent's";
        }) == "");
  test::break_host_gpu(test::no_gpu);
}

TEST_CASE("wrap on a GPU: a child that takes NCCL too long is NCCL's, and its parent stays") {
  const BesideFake beside({"GYRE_COLLECTIVES=all_reduce", "GYRE_TIMEOUT=1"});
  const test::KeptLog log;
  std::atomic<bool> gone_on{false};
  test::splitting() = [&](int) {
    test::becomes([&] { return gone_on.load(); });
    return ncclSuccess;
  };
  CHECK(run_nccl(3, [&](ncclComm_t comm, int rank) -> std::string {
          ncclComm_t pair = nullptr;
          NCCL_OK(ncclCommSplit(comm, rank == 2 ? NCCL_SPLIT_NOCOLOR : 0, rank, &pair, nullptr));
          if (rank == 2) gone_on = true;
          if (rank != 2) {
            if (auto word = by_nccl(pair, 2); !word.empty()) return word;
            NCCL_OK(ncclCommDestroy(pair));
          }
          GpuFloats data(many, 1);
          HostCudaStream stream;
          NCCL_OK(reduce(data, comm, stream));
          ncclResult_t state = ncclInternalError;
          NCCL_OK(ncclCommGetAsyncError(comm, &state));
          return newly_to_nccl().empty() && stream.done() && data.all(3) && state == ncclSuccess ? "" : "the parent is not as it was";
        }) == "");
  test::splitting() = [](int) { return ncclSuccess; };
  CHECK(log.count("split: NCCL runs all calls of this communicator: ranks 0, 1 did not come to a call of all") == 3);
}

TEST_CASE("wrap on a GPU: ranks of which NCCL refuses one a part come to the same vote the next time, and stay as they are") {
  const BesideFake beside({"GYRE_COLLECTIVES=all_reduce"});
  const test::KeptLog log;
  test::splitting() = [](int color) { return color == 1 ? ncclInvalidUsage : ncclSuccess; };
  CHECK(run_nccl(3, [&](ncclComm_t comm, int rank) -> std::string {
          ncclComm_t part = nullptr, whole = nullptr;
          NCCL_GIVES(rank == 2 ? ncclInvalidUsage : ncclSuccess, ncclCommSplit(comm, rank / 2, rank, &part, nullptr));
          if (rank != 2) {
            if (auto word = by_nccl(part, 2); !word.empty()) return word;
            NCCL_OK(ncclCommDestroy(part));
          }
          NCCL_OK(ncclCommSplit(comm, 0, rank, &whole, nullptr));
          if (auto word = by_nccl(whole, 3); !word.empty()) return word;
          NCCL_OK(ncclCommDestroy(whole));
          GpuFloats data(many, 1);
          HostCudaStream stream;
          NCCL_OK(reduce(data, comm, stream));
          return newly_to_nccl().empty() && stream.done() && data.all(3) ? "" : "the parent is not as it was";
        }) == "");
  test::splitting() = [](int) { return ncclSuccess; };
  CHECK(log.count("split: NCCL runs all calls of this communicator: rank 2: NCCL has refused it a part of these ranks") == 6);
}

TEST_CASE("wrap on a GPU: a part that a group was to make of which gyre has refused a call was not refused by NCCL") {
  const BesideFake beside({"GYRE_COLLECTIVES=all_reduce"});
  const test::KeptLog log;
  CHECK(run_nccl(2, [](ncclComm_t comm, int rank) -> std::string {
          ncclComm_t part = nullptr;
          std::vector<float> host(many, 1);
          HostCudaStream stream;
          NCCL_OK(ncclGroupStart());
          NCCL_OK(ncclCommSplit(comm, 0, rank, &part, nullptr));
          NCCL_GIVES(ncclInvalidUsage, ncclAllReduce(host.data(), host.data(), many, ncclFloat32, ncclSum, comm, stream));
          NCCL_GIVES(ncclInvalidUsage, ncclGroupEnd());
          NCCL_OK(ncclCommSplit(comm, 0, rank, &part, nullptr));
          newly_to_nccl();
          GpuFloats data(many, 1);
          NCCL_OK(reduce(data, part, stream));
          if (!newly_to_nccl().empty() || !stream.done() || !data.all(2)) return "the part is not gyre's, too";
          NCCL_OK(ncclCommDestroy(part));
          return "";
        }) == "");
  CHECK(log.count("NCCL runs all calls") == 0);
}

TEST_CASE("wrap on a GPU: a rank without gyre leaves all to NCCL, and nobody waits for long") {
  const BesideFake beside({"GYRE_COLLECTIVES=all_reduce", "GYRE_TIMEOUT=5"});
  const test::KeptLog log;
  const int used = test::host_gpus_used();
  auto init = reinterpret_cast<decltype(&ncclCommInitRank)>(::dlsym(BesideFake::library(), "ncclCommInitRank"));
  const ncclUniqueId id = test::new_id();
  std::array<std::string, 3> words;
  std::vector<std::thread> threads;
  for (int rank = 0; rank < 3; ++rank) {
    threads.emplace_back([&, rank] {
      const auto body = [&]() -> std::string {
        ncclComm_t comm = nullptr;
        NCCL_OK((rank == 2 ? init : &ncclCommInitRank)(&comm, 3, id, rank));
        if (auto word = by_nccl(comm, 3); !word.empty()) return word;
        NCCL_OK(ncclCommDestroy(comm));
        return "";
      };
      words.at(static_cast<size_t>(rank)) = body();
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::string& word : words) CHECK(word == "");
  CHECK(log.count("rank 2 of 3 did not join within 5 s") == 2);
  CHECK(test::host_gpus_used() == used);
}

TEST_CASE("wrap on a GPU: where nothing can be taken over no GPU is asked for") {
  const BesideFake beside;
  const test::KeptLog log;
  const int used = test::host_gpus_used();
  size_t ranks = 0;
  for (const std::vector<std::string>& settings :
       {std::vector<std::string>{}, {"GYRE_COLLECTIVES=all_reduce", "GYRE_MIN_BYTES=2", "GYRE_MAX_BYTES=1"}}) {
    BesideFake::set_up(settings);
    CHECK(run_nccl(2, [](ncclComm_t comm, int) { return by_nccl(comm, 2); }) == "");
    ranks += 2;  // who takes nothing over says so in the background
    CHECK(test::becomes([&] { return log.count("NCCL runs all calls of this communicator") == ranks; }));
  }
  CHECK(test::host_gpus_used() == used);
}

TEST_CASE("wrap on a GPU: memory that the GPU does not reach is an error that says so, also of its group") {
  const BesideFake beside;
  const test::KeptLog log;
  CHECK(run_nccl(2, [](ncclComm_t comm, int) -> std::string {
          GpuFloats data(many, 1), more(many, 1);
          HostCudaStream stream;
          std::vector<float> host(many, 1);
          NCCL_GIVES(ncclInvalidUsage, ncclAllReduce(data.data(), host.data(), many, ncclFloat32, ncclSum, comm, stream));
          NCCL_GIVES(ncclInvalidArgument, ncclAllReduce(nullptr, data.data(), many, ncclFloat32, ncclSum, comm, stream));
          if (!newly_to_nccl().empty()) return "it came to NCCL";
          NCCL_OK(ncclGroupStart());
          NCCL_OK(reduce(more, comm, stream));
          NCCL_GIVES(ncclInvalidUsage, ncclAllReduce(host.data(), host.data(), many, ncclFloat32, ncclSum, comm, stream));
          NCCL_GIVES(ncclInvalidUsage, ncclGroupEnd());
          NCCL_OK(ncclGroupStart());
          NCCL_OK(reduce(more, comm, stream));
          NCCL_GIVES(ncclInvalidArgument, ncclAllReduce(nullptr, data.data(), 1, ncclFloat32, ncclSum, comm, stream));
          NCCL_GIVES(ncclInvalidArgument, ncclGroupEnd());
          if (!stream.done() || !more.all(1)) return "a wrong group was done";
          NCCL_OK(reduce(data, comm, stream));
          return stream.done() && data.all(2) ? "" : "a wrong sum afterwards";
        }) == "");
  CHECK(log.count("ncclAllReduce: the GPU does not reach 0x") == 4);
}

TEST_CASE("wrap on a GPU: of a group that gyre has refused NCCL does nothing, and the order of calls stays") {
  const BesideFake beside;
  CHECK(run_nccl(2, [](ncclComm_t comm, int rank) -> std::string {
          GpuFloats data(many, 0), message(1, static_cast<float>(rank));
          std::vector<float> host(many, 1);
          HostCudaStream stream, other, third;
          std::promise<void> gate;
          stream.add([&, opened = gate.get_future().share()] {
            opened.wait();
            std::fill_n(data.data(), many, 1.0F);
          });
          NCCL_OK(reduce(data, comm, stream));
          NCCL_OK(ncclGroupStart());
          if (rank == 0) NCCL_OK(ncclSend(message.data(), 1, ncclFloat32, 1, comm, other));
          if (rank == 1) NCCL_OK(ncclRecv(message.data(), 1, ncclFloat32, 0, comm, other));
          NCCL_GIVES(ncclInvalidUsage, ncclAllReduce(host.data(), host.data(), many, ncclFloat32, ncclSum, comm, other));
          NCCL_GIVES(ncclInvalidUsage, ncclGroupEnd());
          const std::string said = ncclGetLastError(comm);
          if (said.find("the GPU does not reach") == std::string::npos) return "the last error is: " + said;
          NCCL_OK(reduce(data, comm, third, 1));
          gate.set_value();
          if (!stream.done() || !other.done() || !third.done()) return "a stream does not end";
          return data.data()[0] == 4 && message.all(static_cast<float>(rank)) ? "" : "wrong data";
        }) == "");
}

TEST_CASE("wrap on a GPU: NCCL answers what comes after the end of its communicator") {
  const BesideFake beside;
  CHECK(run_nccl(2, [](ncclComm_t comm, int) -> std::string {
          GpuFloats data(many, 1);
          HostCudaStream stream;
          NCCL_OK(ncclCommFinalize(comm));
          NCCL_GIVES(ncclInvalidArgument, reduce(data, comm, stream));
          if (const auto calls = newly_to_nccl(); calls != "AllReduce ") return "to NCCL: " + calls;
          return stream.done() && data.all(1) ? "" : "it was done";
        }) == "");
}

TEST_CASE("wrap on a GPU: an NCCL that has no last error is not asked, and that is none") {
  const BesideFake beside;
  const test::KeptLog log;
  const plugin::nccl::Table whole = plugin::nccl::wrap::real();
  plugin::nccl::Table old = whole;
  old.ncclGetLastError = &plugin::nccl::Missing<&plugin::nccl::Table::ncclGetLastError>::call;
  plugin::nccl::forget_last_error(plugin::nccl::last_error());
  plugin::nccl::wrap::set_up(old, test::configured({}));
  CHECK(std::string(ncclGetLastError(nullptr)).empty());
  CHECK(std::string(ncclGetLastError(nullptr)).empty());
  plugin::nccl::wrap::set_up(whole, test::configured({}));
  CHECK(log.count("too old") == 0);
}

TEST_CASE("wrap on a GPU: behind an error of NCCL's own gyre's is not the last any more") {
  const BesideFake beside;
  const plugin::nccl::Table whole = plugin::nccl::wrap::real();
  plugin::nccl::Table real = whole;
  real.ncclMemFree = [](void*) { return ncclInvalidArgument; };
  real.ncclGroupEnd = [] { return ncclInvalidUsage; };
  real.ncclMemAlloc = &plugin::nccl::Missing<&plugin::nccl::Table::ncclMemAlloc>::call;
  plugin::nccl::wrap::set_up(real, test::configured({}));
  const auto last_after = [](auto call) {
    std::ignore = plugin::failed("before", Error{Code::internal, "gyre's own"});
    const ncclResult_t result = call();
    return std::to_string(result) + ncclGetLastError(nullptr);
  };
  CHECK(last_after([] { return ncclMemFree(nullptr); }) == "4");
  CHECK(last_after([] { return ncclGroupEnd(); }) == "5");
  void* memory = nullptr;
  CHECK(test::contains(last_after([&] { return ncclMemAlloc(&memory, 1); }), "too old"));
  plugin::nccl::wrap::set_up(whole, test::configured({}));
  plugin::nccl::forget_last_error(plugin::nccl::last_error());
}

TEST_CASE("wrap on a GPU: where CUDA does not say who is to run a call it is an error") {
  const BesideFake beside;
  CHECK(run_nccl(2, [](ncclComm_t comm, int rank) -> std::string {
          GpuFloats data(many, 1);
          HostCudaStream stream;
          test::break_host_stream(stream, true);
          if (rank == 0) NCCL_GIVES(ncclUnhandledCudaError, reduce(data, comm, stream));
          test::break_host_stream(stream, false);
          if (const auto calls = newly_to_nccl(); !calls.empty()) return "to NCCL: " + calls;
          NCCL_OK(reduce(data, comm, stream));
          return stream.done() && data.all(2) ? "" : "a wrong sum afterwards";
        }) == "");
}
