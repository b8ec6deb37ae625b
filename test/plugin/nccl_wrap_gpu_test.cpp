// gyre beside NCCL on GPU memory: which engine a call goes to, and that both keep the order of a communicator's calls.
#include "test/catch.h"
#include "test/plugin/nccl_beside_fake.h"
#include "test/plugin/nccl_every_collective.h"

using namespace gyre;
using test::BesideFake;
using test::GpuFloats;
using test::HostCudaStream;
using test::newly_to_nccl;
using test::run_nccl;

namespace {

constexpr size_t large = 3000, small = 4;  // elements: gyre's, NCCL's

ncclResult_t sum(float* data, size_t count, ncclComm_t comm, cudaStream_t stream) {
  return ncclAllReduce(data, data, count, ncclFloat32, ncclSum, comm, stream);
}

/// With a configuration of its own, or none.
ncclResult_t sum_by(const ncclCollConfig_t* config, float* data, ncclComm_t comm, cudaStream_t stream) {
  return ncclAllReduceConfig(data, data, large, ncclFloat32, ncclSum, comm, stream, config);
}

}  // namespace

TEST_CASE("wrap on a GPU: calls go to gyre or NCCL by the rules, and wait for nobody") {
  const BesideFake beside;
  const test::KeptLog log;
  CHECK(run_nccl(3, [](ncclComm_t comm, int rank) -> std::string {
          GpuFloats data(large, 0);
          HostCudaStream stream;
          std::promise<void> gate;
          stream.add([&, opened = gate.get_future().share()] {
            opened.wait();
            std::fill_n(data.data(), large, static_cast<float>(rank + 1));
          });
          NCCL_OK(sum(data.data(), large, comm, stream));
          if (const auto calls = newly_to_nccl(); !calls.empty()) return "a large one: " + calls;
          NCCL_OK(sum(data.data(), small, comm, stream));
          if (const auto calls = newly_to_nccl(); calls != "AllReduce ") return "a small one: " + calls;
          NCCL_OK(ncclBroadcast(data.data(), data.data(), large, ncclFloat32, 2, comm, stream));
          if (const auto calls = newly_to_nccl(); !calls.empty()) return "a broadcast: " + calls;
          gate.set_value();
          if (!stream.done()) return "the stream does not end";
          return data.data()[0] == 18 && data.data()[large - 1] == 6 ? "" : "a wrong sum";
        }) == "");
  CHECK(log.count("gyre may run calls of this communicator on GPU memory") == 3);
  CHECK(log.count("all_reduce of about 12000 bytes by gyre") == 3);
  CHECK(log.count("all_reduce of about 16 bytes by NCCL: it is smaller than GYRE_MIN_BYTES") == 3);
}

TEST_CASE("wrap on a GPU: every collective that gyre takes over is the one that was called") {
  const BesideFake beside({"GYRE_COLLECTIVES=all_reduce,reduce_scatter,reduce,broadcast,all_gather,alltoall,gather,scatter"});
  const bool in_place = GENERATE(false, true);
  CHECK(run_nccl(3, [&](ncclComm_t comm, int rank) {
          const auto wrong = test::collectives::every_collective<test::HostCudaArray<int64_t>, HostCudaStream>(comm, rank, 3, 17, in_place);
          return !wrong.empty() || newly_to_nccl().empty() ? wrong : "it has come to NCCL";
        }) == "");
}

TEST_CASE("wrap on a GPU: a communicator's calls keep their order across streams and engines") {
  const BesideFake beside;
  CHECK(run_nccl(3, [](ncclComm_t comm, int rank) -> std::string {
          GpuFloats data(large, 0);
          HostCudaStream first, second, third;
          std::promise<void> gate;
          const auto opened = gate.get_future().share();
          first.add([&, opened] {
            opened.wait();
            std::fill_n(data.data(), large, static_cast<float>(rank + 1));
          });
          NCCL_OK(sum(data.data(), large, comm, first));   // gyre: 6
          NCCL_OK(sum(data.data(), small, comm, second));  // NCCL: 18
          NCCL_OK(sum(data.data(), large, comm, third));   // gyre: 54 and 18
          NCCL_OK(sum(data.data(), small, comm, first));   // NCCL: 162
          if (const auto calls = newly_to_nccl(); calls != "AllReduce AllReduce ") return "to NCCL: " + calls;
          gate.set_value();
          for (HostCudaStream* stream : {&first, &second, &third}) {
            if (!stream->done()) return "a stream does not end";
          }
          return data.data()[0] == 162 && data.data()[large - 1] == 18 ? "" : "a wrong sum: " + std::to_string(data.data()[0]);
        }) == "");
}

TEST_CASE("wrap on a GPU: a collective with a configuration of its own is NCCL's, in the order of both engines, and so is its group") {
  const BesideFake beside;
  const test::KeptLog log;
  CHECK(run_nccl(3, [](ncclComm_t comm, int rank) -> std::string {
          const ncclCollConfig_t config{sizeof config, NCCL_CONFIG_MAGIC, 23200, nullptr, 1, 2, 1, 1, nullptr, 1, 0, 0, nullptr};
          GpuFloats data(large, 0), other(large, 1);
          HostCudaStream first, second, third;
          std::promise<void> gate;
          first.add([&, opened = gate.get_future().share()] {
            opened.wait();
            std::fill_n(data.data(), large, static_cast<float>(rank + 1));
          });
          NCCL_OK(sum(data.data(), large, comm, first));        // gyre: 6
          NCCL_OK(sum_by(&config, data.data(), comm, second));  // NCCL: 18
          NCCL_OK(sum_by(nullptr, data.data(), comm, third));   // gyre: 54
          if (const auto calls = newly_to_nccl(); calls != "AllReduceConfig ") return "to NCCL: " + calls;
          NCCL_OK(ncclGroupStart());
          NCCL_OK(sum(other.data(), large, comm, first));
          NCCL_OK(sum_by(&config, data.data(), comm, second));  // NCCL: 162
          NCCL_OK(ncclGroupEnd());
          if (const auto calls = newly_to_nccl(); calls != "GroupStart AllReduce AllReduceConfig GroupEnd ") return "a group: " + calls;
          gate.set_value();
          for (HostCudaStream* stream : {&first, &second, &third}) {
            if (!stream->done()) return "a stream does not end";
          }
          return data.all(162) && other.all(3) ? "" : "a wrong sum: " + std::to_string(data.data()[0]);
        }) == "");
  CHECK(log.count("all_reduce of about 12000 bytes by NCCL: it has a configuration of its own") == 3);
}

TEST_CASE("wrap on a GPU: of a group one communicator's collectives go to one engine") {
  const BesideFake beside;
  CHECK(run_nccl(3, [](ncclComm_t comm, int) -> std::string {
          GpuFloats one(large, 1), two(large, 2);
          HostCudaStream stream, other;
          const auto group = [&](size_t first, size_t second) {
            const ncclResult_t results[] = {ncclGroupStart(), sum(one.data(), first, comm, stream), sum(two.data(), second, comm, other),
                                            ncclGroupEnd()};
            return std::all_of(std::begin(results), std::end(results), [](ncclResult_t result) { return result == ncclSuccess; });
          };
          if (!group(large, large)) return "a group of large ones";
          if (const auto calls = newly_to_nccl(); calls != "GroupStart GroupEnd ") return "large ones: " + calls;
          for (const auto& [first, second] : {std::pair(large, small), {small, large}}) {
            if (!group(first, second)) return "a group with a small one";
            if (const auto calls = newly_to_nccl(); calls != "GroupStart AllReduce AllReduce GroupEnd ")
              return "with a small one: " + calls;
          }
          if (!stream.done() || !other.done()) return "a stream does not end";
          return one.data()[0] == 27 && one.data()[large - 1] == 9 && two.data()[0] == 54 && two.data()[large - 1] == 18 ? ""
                                                                                                                         : "a wrong sum";
        }) == "");
}

TEST_CASE("wrap on a GPU: a group that gyre runs is in the order of each of its streams") {
  const BesideFake beside;
  CHECK(run_nccl(2, [](ncclComm_t comm, int) -> std::string {
          test::Late late;
          bool in_order = false;
          GpuFloats one(large, 1), two(large, 2);
          HostCudaStream stream, other;
          other.add([&] { late.wait(); });
          NCCL_OK(ncclGroupStart());
          NCCL_OK(sum(one.data(), large, comm, stream));
          NCCL_OK(sum(two.data(), large, comm, other));
          NCCL_OK(ncclGroupEnd());
          stream.add([&] {
            in_order = late.done;
            late.overtaken = true;
          });
          if (!stream.done() || !other.done()) return "a stream does not end";
          return in_order && one.all(2) && two.all(4) ? "" : "the one stream did not wait for the other";
        }) == "");
}

TEST_CASE("wrap on a GPU: what NCCL is too old to simulate stays a group") {
  const BesideFake beside;
  const test::KeptLog log;
  CHECK(run_nccl(2, [](ncclComm_t comm, int) -> std::string {
          GpuFloats data(large, 1);
          HostCudaStream stream;
          NCCL_OK(ncclGroupStart());
          NCCL_OK(sum(data.data(), large, comm, stream));
          NCCL_GIVES(ncclInvalidUsage, ncclGroupSimulateEnd(nullptr));
          if (!stream.done() || !data.all(1)) return "it was done";
          NCCL_OK(ncclGroupEnd());
          if (const auto calls = newly_to_nccl(); calls != "GroupStart GroupEnd ") return "to NCCL: " + calls;
          return stream.done() && data.all(2) ? "" : "a wrong sum";
        }) == "");
  CHECK(log.count("ncclGroupSimulateEnd: the NCCL of this machine is too old to have it") == 2);
}

TEST_CASE("wrap on a GPU: sends of a group are NCCL's, whichever ranks have them, after its collectives") {
  const BesideFake beside;
  CHECK(run_nccl(3, [](ncclComm_t comm, int rank) -> std::string {
          GpuFloats data(large, 1), message(1, 0);
          HostCudaStream stream, other;
          if (rank < 2) NCCL_OK(ncclGroupStart());
          if (rank == 0) NCCL_OK(ncclSend(data.data(), 1, ncclFloat32, 1, comm, other));
          NCCL_OK(sum(data.data(), large, comm, stream));
          if (rank == 1) NCCL_OK(ncclRecv(message.data(), 1, ncclFloat32, 0, comm, other));
          if (rank < 2) NCCL_OK(ncclGroupEnd());
          const std::string expected[] = {"GroupStart Send GroupEnd ", "GroupStart Recv GroupEnd ", ""};
          if (const auto calls = newly_to_nccl(); calls != expected[rank]) return "to NCCL: " + calls;
          if (!stream.done() || !other.done()) return "a stream does not end";
          return data.all(3) && (rank != 1 || message.all(3)) ? "" : "wrong data";
        }) == "");
}

TEST_CASE("wrap on a GPU: many sends of a group are in the order of calls once for each stream") {
  const BesideFake beside;
  const int before = test::host_marks_used();
  CHECK(run_nccl(2, [](ncclComm_t comm, int rank) -> std::string {
          GpuFloats data(1, 1), got(3, 0);
          HostCudaStream stream;
          const auto give = [&](int i) {
            return rank == 0 ? ncclSend(data.data(), 1, ncclFloat32, 1, comm, stream)
                             : ncclRecv(got.data() + i, 1, ncclFloat32, 0, comm, stream);
          };
          NCCL_OK(ncclGroupStart());
          for (int i = 0; i < 3; ++i) NCCL_OK(give(i));
          NCCL_OK(ncclGroupEnd());
          if (!stream.done()) return "the stream does not end";
          return rank == 0 || got.all(1) ? "" : "wrong data";
        }) == "");
  CHECK(test::host_marks_used() - before == 4);  // each rank waits, and marks
}

TEST_CASE("wrap on a GPU: one thread gives all ranks of a process their calls") {
  const BesideFake beside;
  std::array<ncclComm_t, 3> comms{};
  REQUIRE(ncclCommInitAll(comms.data(), 3, nullptr) == ncclSuccess);
  newly_to_nccl();
  std::vector<std::unique_ptr<GpuFloats>> data;
  std::array<HostCudaStream, 3> streams;
  for (int rank = 0; rank < 3; ++rank) data.push_back(std::make_unique<GpuFloats>(large, static_cast<float>(rank + 1)));
  for (const size_t count : {large, small, large}) {
    REQUIRE(ncclGroupStart() == ncclSuccess);
    for (size_t r = 0; r < 3; ++r) CHECK(sum(data[r]->data(), count, comms.at(r), streams.at(r)) == ncclSuccess);
    REQUIRE(ncclGroupEnd() == ncclSuccess);
    CHECK(newly_to_nccl() == (count == large ? "GroupStart GroupEnd " : "GroupStart AllReduce AllReduce AllReduce GroupEnd "));
  }
  for (size_t r = 0; r < 3; ++r) {
    CHECK(streams.at(r).done());
    CHECK(data[r]->data()[0] == 54);
    CHECK(data[r]->data()[large - 1] == 18);
  }
  for (const ncclComm_t comm : comms) CHECK(ncclCommDestroy(comm) == ncclSuccess);
}

TEST_CASE("wrap on a GPU: what is captured, and what lies in a window, is NCCL's") {
  const BesideFake beside;
  CHECK(run_nccl(2, [](ncclComm_t comm, int rank) -> std::string {
          GpuFloats data(large, 1), window(2 * large, 1);
          HostCudaStream stream, captured;
          ncclWindow_t registered = nullptr;
          NCCL_OK(ncclCommWindowRegister(comm, window.data(), 2 * large * sizeof(float), &registered, 1));
          NCCL_OK(sum(window.data() + large, large, comm, stream));
          if (const auto calls = newly_to_nccl(); calls != "AllReduce ") return "in a window: " + calls;
          // What only the root gives is no reason, since the others don't see it.
          NCCL_OK(ncclBroadcast(rank == 0 ? window.data() : nullptr, data.data(), large, ncclFloat32, 0, comm, stream));
          if (const auto calls = newly_to_nccl(); !calls.empty()) return "from a window: " + calls;
          if (!stream.done()) return "the stream does not end";
          NCCL_OK(ncclCommWindowDeregister(comm, registered));
          NCCL_OK(sum(window.data() + large, large, comm, stream));
          if (const auto calls = newly_to_nccl(); !calls.empty()) return "in a window no more: " + calls;
          return stream.done() && window.data()[large] == 4 && data.all(1) ? "" : "a wrong sum";
        }) == "");
  CHECK(run_nccl(1, [](ncclComm_t comm, int) -> std::string {
          GpuFloats data(large, 1);
          HostCudaStream stream;
          NCCL_OK(sum(data.data(), large, comm, stream));
          return newly_to_nccl() == "AllReduce " && stream.done() ? "" : "one rank alone";
        }) == "");
  CHECK(run_nccl(2, [&](ncclComm_t comm, int) -> std::string {
          HostCudaStream stream, own;
          test::capture_host_stream(stream, true);
          GpuFloats data(large, 1), more(large, 1);
          NCCL_OK(sum(data.data(), large, comm, stream));
          if (const auto calls = newly_to_nccl(); calls != "AllReduce ") return "captured: " + calls;
          NCCL_OK(ncclGroupStart());
          NCCL_OK(sum(data.data(), large, comm, stream));
          NCCL_OK(sum(data.data(), large, comm, stream));
          NCCL_OK(ncclGroupEnd());
          if (const auto calls = newly_to_nccl(); calls != "GroupStart AllReduce AllReduce GroupEnd ") return "a captured group: " + calls;
          NCCL_OK(sum(more.data(), large, comm, own));
          test::capture_host_stream(stream, false);
          return newly_to_nccl().empty() && own.done() && stream.done() && more.all(2) ? "" : "after a capture";
        }) == "");
}

TEST_CASE("wrap on a GPU: only symmetric windows count, and those that NCCL has made") {
  const BesideFake beside;
  for (const int flags : {int{NCCL_WIN_COLL_SYMMETRIC}, 0}) {
    BesideFake::hooks().has_no_windows = flags == NCCL_WIN_COLL_SYMMETRIC ? 1 : 0;
    CHECK(run_nccl(2, [&](ncclComm_t comm, int rank) -> std::string {
            GpuFloats data(large, 1);
            HostCudaStream stream;
            ncclWindow_t made = nullptr;
            if (rank == 0) NCCL_OK(ncclCommWindowRegister(comm, data.data(), large * sizeof(float), &made, flags));
            NCCL_OK(ncclCommWindowDeregister(comm, nullptr));
            NCCL_OK(sum(data.data(), large, comm, stream));
            return newly_to_nccl().empty() && stream.done() && data.all(2) ? "" : "it has come to NCCL";
          }) == "");
  }
}

TEST_CASE("wrap on a GPU: a window that a group makes counts from its end until it is given back") {
  const BesideFake beside;
  CHECK(run_nccl(2, [](ncclComm_t comm, int) -> std::string {
          GpuFloats data(large, 1);
          HostCudaStream stream;
          ncclWindow_t made = nullptr;
          const auto registered = [&](bool well) {
            if (ncclGroupStart() != ncclSuccess) return false;
            ncclCommWindowRegister(comm, data.data(), large * sizeof(float), &made, NCCL_WIN_COLL_SYMMETRIC);
            if (!well) ncclAllReduce(nullptr, data.data(), small, ncclFloat32, ncclSum, comm, stream);
            return (ncclGroupEnd() == ncclSuccess) == well;
          };
          const auto by_nccl = [&] {
            newly_to_nccl();
            return sum(data.data(), large, comm, stream) != ncclSuccess || !newly_to_nccl().empty();
          };
          if (!registered(false) || by_nccl()) return "of a group that has failed";
          if (!registered(true) || made == nullptr || !by_nccl()) return "of a group";
          NCCL_OK(ncclCommWindowDeregister(comm, made));
          if (by_nccl()) return "given back";
          return stream.done() && data.all(8) ? "" : "a wrong sum";
        }) == "");
}

TEST_CASE("wrap on a GPU: pre-multiplied sums are gyre's, too, with scalars of the GPU's") {
  const BesideFake beside;
  CHECK(run_nccl(2, [](ncclComm_t comm, int rank) -> std::string {
          GpuFloats data(large, 1), scalar(1, static_cast<float>(rank + 2));
          HostCudaStream stream;
          ncclRedOp_t op{};
          NCCL_OK(ncclRedOpCreatePreMulSum(&op, scalar.data(), ncclFloat32, ncclScalarDevice, comm));
          NCCL_OK(ncclAllReduce(data.data(), data.data(), large, ncclFloat32, op, comm, stream));
          NCCL_OK(ncclRedOpDestroy(op, comm));
          return newly_to_nccl().empty() && stream.done() && data.all(5) ? "" : "a wrong sum";
        }) == "");
}

TEST_CASE("wrap on a GPU: an operation that is destroyed in a group is there for all of the group's calls") {
  const BesideFake beside;
  CHECK(run_nccl(2, [](ncclComm_t comm, int rank) -> std::string {
          GpuFloats data(large, 1), few(small, 1);
          HostCudaStream stream;
          float scalar = static_cast<float>(rank + 2);
          ncclRedOp_t op{};
          NCCL_OK(ncclGroupStart());
          NCCL_OK(ncclRedOpCreatePreMulSum(&op, &scalar, ncclFloat32, ncclScalarHostImmediate, comm));
          NCCL_OK(ncclAllReduce(data.data(), data.data(), large, ncclFloat32, op, comm, stream));
          NCCL_OK(ncclRedOpDestroy(op, comm));
          NCCL_OK(sum(few.data(), small, comm, stream));
          NCCL_OK(ncclGroupEnd());
          if (const auto calls = newly_to_nccl(); calls != "GroupStart AllReduce AllReduce GroupEnd ") return "to NCCL: " + calls;
          if (!stream.done() || !data.all(5) || !few.all(2)) return "a wrong sum";
          NCCL_GIVES(ncclInvalidArgument, ncclAllReduce(data.data(), data.data(), small, ncclFloat32, op, comm, stream));
          return "";
        }) == "");
}

TEST_CASE("wrap on a GPU: an operation that was destroyed is known no more") {
  const BesideFake beside;
  CHECK(run_nccl(2, [](ncclComm_t comm, int) -> std::string {
          GpuFloats data(large, 1);
          HostCudaStream stream;
          float scalar = 2;
          ncclRedOp_t op{};
          NCCL_OK(ncclRedOpCreatePreMulSum(&op, &scalar, ncclFloat32, ncclScalarHostImmediate, comm));
          NCCL_OK(ncclAllReduce(data.data(), data.data(), large, ncclFloat32, op, comm, stream));
          NCCL_OK(ncclRedOpDestroy(op, comm));
          if (const auto calls = newly_to_nccl(); !calls.empty()) return "to NCCL: " + calls;
          NCCL_GIVES(ncclInvalidArgument, ncclAllReduce(data.data(), data.data(), large, ncclFloat32, op, comm, stream));
          if (const auto calls = newly_to_nccl(); calls != "AllReduce ") return "destroyed, to NCCL: " + calls;
          return stream.done() && data.all(4) ? "" : "a wrong sum";
        }) == "");
}

TEST_CASE("wrap on a GPU: communicators of some ranks are gyre's there, too") {
  const BesideFake beside;
  CHECK(run_nccl(4, [](ncclComm_t comm, int rank) -> std::string {
          ncclComm_t half = nullptr, rest = nullptr;
          GpuFloats data(large, static_cast<float>(rank));
          HostCudaStream stream;
          NCCL_OK(ncclCommSplit(comm, rank % 2, rank, &half, nullptr));
          NCCL_OK(sum(data.data(), large, half, stream));
          if (!newly_to_nccl().empty() || !stream.done() || !data.all(rank % 2 == 0 ? 2 : 4)) return "a half";
          NCCL_OK(ncclCommDestroy(half));
          if (rank == 1) return "";
          int without = 1;
          NCCL_OK(ncclCommShrink(comm, &without, 1, &rest, nullptr, NCCL_SHRINK_DEFAULT));
          NCCL_OK(sum(data.data(), large, rest, stream));
          if (!newly_to_nccl().empty() || !stream.done() || !data.all(8)) return "the rest";
          NCCL_OK(ncclCommFinalize(rest));
          NCCL_OK(ncclCommDestroy(rest));
          return "";
        }) == "");
}

TEST_CASE("wrap on a GPU: where one of a communicator and of what it is made of does not block, it is NCCL's, and each rank says why") {
  const BesideFake beside;
  const test::KeptLog log;
  CHECK(run_nccl(3, [](ncclComm_t comm, int rank) -> std::string {
          ncclComm_t half = nullptr, rest = nullptr;
          ncclConfig_t config = test::nccl_config();
          config.blocking = 0;
          int without = 1;
          NCCL_OK(ncclCommSplit(comm, 0, rank, &half, &config));
          if (rank != 1) NCCL_OK(ncclCommShrink(comm, &without, 1, &rest, &config, NCCL_SHRINK_DEFAULT));
          newly_to_nccl();
          GpuFloats data(large, 1);
          HostCudaStream stream;
          NCCL_OK(sum(data.data(), large, half, stream));
          if (rank != 1) NCCL_OK(sum(data.data(), large, rest, stream));
          if (newly_to_nccl() != (rank == 1 ? "AllReduce " : "AllReduce AllReduce ")) return "it is not NCCL's";
          if (rank != 1) NCCL_OK(ncclCommDestroy(rest));
          NCCL_OK(ncclCommDestroy(half));
          return "";
        }) == "");
  const std::string why = ": NCCL runs all calls of this communicator: ";
  CHECK(log.count("of 3, split" + why + "rank 0: one of it and of what it is made of does not block") == 3);
  CHECK(log.count("of 3, shrunk" + why + "one of it and of what it is made of does not block") == 2);
}
