// gyre beside an NCCL whose communicators do not block: they are made, split and finalized in the background, and so are gyre's.
#include <chrono>
#include <future>

#include "plugin/nccl/wrap_background.h"
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
using test::settled;

namespace {

ncclResult_t begin_rank(ncclComm_t& comm, int ranks, const ncclUniqueId& id, int rank) {
  ncclConfig_t config = test::nccl_config();
  config.blocking = 0;
  return ncclCommInitRankConfig(&comm, ranks, id, rank, &config);
}

/// All of this thread's, one after the other, as only calls that return at once can be given.
template <size_t ranks>
std::array<ncclComm_t, ranks> begin_all() {
  std::array<ncclComm_t, ranks> comms{};
  const ncclUniqueId id = test::new_id();
  for (size_t r = 0; r < ranks; ++r) CHECK(begin_rank(comms.at(r), ranks, id, static_cast<int>(r)) == ncclInProgress);
  return comms;
}

template <class Comms>
bool all_settled(const Comms& comms) {
  return std::all_of(comms.begin(), comms.end(), [](ncclComm_t comm) { return comm == nullptr || settled(comm) == ncclSuccess; });
}

/// Sums over these ranks, which are all this thread's: what came to NCCL, or what was wrong.
template <class Comms>
std::string sums(const Comms& comms, size_t count) {
  std::vector<std::unique_ptr<GpuFloats>> data;
  std::vector<std::unique_ptr<HostCudaStream>> streams;
  newly_to_nccl();
  NCCL_OK(ncclGroupStart());
  for (const ncclComm_t comm : comms) {
    data.push_back(std::make_unique<GpuFloats>(count, 1));
    streams.push_back(std::make_unique<HostCudaStream>());
    NCCL_OK(reduce(*data.back(), comm, *streams.back(), count));
  }
  NCCL_OK(ncclGroupEnd());
  for (size_t r = 0; r < comms.size(); ++r) {
    if (!streams[r]->done() || !data[r]->all(static_cast<float>(comms.size()))) return "a wrong sum";
  }
  return newly_to_nccl();
}

/// NCCL's own function, behind gyre's.
template <class Function>
Function* real(const char* name, Function* /*as*/) {
  return reinterpret_cast<Function*>(::dlsym(BesideFake::library(), name));
}
#define REAL(name) real(#name, &name)

/// A rank of this thread's beside one of a process that has no gyre.
struct BesideStranger {
  ncclComm_t own = nullptr, stranger = nullptr;

  BesideStranger() {
    const ncclUniqueId id = test::new_id();
    CHECK(begin_rank(own, 2, id, 0) == ncclInProgress);
    CHECK(REAL(ncclCommInitRank)(&stranger, 2, id, 1) == ncclSuccess);  // after which NCCL's part of both is made
  }
};

}  // namespace

TEST_CASE("wrap in the background: what does not block is gyre's, too, when it is ready") {
  const BesideFake beside;
  const test::KeptLog log;
  const auto comms = begin_all<3>();
  CHECK(all_settled(comms));
  CHECK(sums(comms, many) == "GroupStart GroupEnd ");
  CHECK(sums(comms, 1) == "GroupStart AllReduce AllReduce AllReduce GroupEnd ");
  CHECK(log.count("gyre may run calls of this communicator on GPU memory") == 3);
  for (const ncclComm_t comm : comms) CHECK(ncclCommFinalize(comm) == ncclInProgress);
  CHECK(all_settled(comms));
  for (const ncclComm_t comm : comms) CHECK(ncclCommDestroy(comm) == ncclSuccess);
}

TEST_CASE("wrap in the background: a group begins all of its communicators") {
  const BesideFake beside;
  std::array<ncclComm_t, 3> comms{};
  const ncclUniqueId id = test::new_id();
  REQUIRE(ncclGroupStart() == ncclSuccess);
  for (size_t r = 0; r < comms.size(); ++r) CHECK(begin_rank(comms.at(r), 3, id, static_cast<int>(r)) == ncclSuccess);
  REQUIRE(ncclGroupEnd() == ncclInProgress);
  CHECK(all_settled(comms));
  CHECK(sums(comms, many) == "GroupStart GroupEnd ");
  for (const ncclComm_t comm : comms) CHECK(ncclCommDestroy(comm) == ncclSuccess);
}

TEST_CASE("wrap in the background: some ranks may block where others don't") {
  const BesideFake beside;
  std::array<ncclComm_t, 2> comms{};
  const ncclUniqueId id = test::new_id();
  CHECK(begin_rank(comms[0], 2, id, 0) == ncclInProgress);
  CHECK(ncclCommInitRank(&comms[1], 2, id, 1) == ncclSuccess);
  CHECK(all_settled(comms));
  CHECK(sums(comms, many) == "GroupStart GroupEnd ");
  for (const ncclComm_t comm : comms) CHECK(ncclCommDestroy(comm) == ncclSuccess);
}

TEST_CASE("wrap in the background: parts of a communicator's ranks are there when it is ready again") {
  const BesideFake beside;
  const auto comms = begin_all<4>();
  REQUIRE(all_settled(comms));
  std::array<ncclComm_t, 4> parts{};
  for (size_t r = 0; r < 4; ++r)
    CHECK(ncclCommSplit(comms.at(r), r == 3 ? NCCL_SPLIT_NOCOLOR : 5, 0, &parts.at(r), nullptr) == ncclInProgress);
  CHECK(all_settled(comms));
  CHECK(parts[3] == nullptr);
  CHECK(sums(std::array{parts[0], parts[1], parts[2]}, many) == "GroupStart GroupEnd ");
  CHECK(sums(comms, many) == "GroupStart GroupEnd ");
  for (const ncclComm_t comm : parts) CHECK((comm == nullptr || ncclCommDestroy(comm) == ncclSuccess));
  for (const ncclComm_t comm : comms) CHECK(ncclCommDestroy(comm) == ncclSuccess);
}

TEST_CASE("wrap in the background: a call before NCCL is ready is refused, and does not come to it") {
  const BesideFake beside;
  std::array<ncclComm_t, 2> comms{};
  const ncclUniqueId id = test::new_id();
  GpuFloats data(many, 1);
  HostCudaStream stream;
  CHECK(begin_rank(comms[0], 2, id, 0) == ncclInProgress);
  newly_to_nccl();
  for (const size_t count : {many, size_t{1}}) CHECK(reduce(data, comms[0], stream, count) == ncclInvalidArgument);
  CHECK(newly_to_nccl() == "");
  CHECK(std::string(ncclGetLastError(comms[0])).find("in progress") != std::string::npos);
  CHECK(begin_rank(comms[1], 2, id, 1) == ncclInProgress);
  CHECK(all_settled(comms));
  CHECK(sums(comms, many) == "GroupStart GroupEnd ");
  for (const ncclComm_t comm : comms) CHECK(ncclCommDestroy(comm) == ncclSuccess);
}

TEST_CASE("wrap in the background: no rank is ready before all know who runs what, and without gyre on all NCCL does") {
  const BesideFake beside({"GYRE_COLLECTIVES=all_reduce", "GYRE_TIMEOUT=1"});
  const test::KeptLog log;
  const BesideStranger ranks;
  GpuFloats data(many, 1), strange(many, 1);
  HostCudaStream stream, other;
  ncclResult_t state = ncclSuccess;
  CHECK(ncclCommGetAsyncError(ranks.own, &state) == ncclSuccess);
  CHECK(state == ncclInProgress);  // and the rank that has no gyre would call by now
  newly_to_nccl();
  CHECK(test::becomes([&] { return reduce(data, ranks.own, stream) == ncclSuccess; }));  // refused at first, then it waits
  CHECK(log.count("NCCL runs all calls of this communicator: rendezvous: rank 1 of 2 did not join within 1 s") == 1);
  CHECK(newly_to_nccl() == "AllReduce ");
  CHECK(settled(ranks.own) == ncclSuccess);
  CHECK(REAL(ncclAllReduce)(strange.data(), strange.data(), many, ncclFloat32, ncclSum, ranks.stranger, other) == ncclSuccess);
  CHECK((stream.done() && other.done() && data.all(2) && strange.all(2)));
  CHECK(ncclCommDestroy(ranks.own) == ncclSuccess);
  CHECK(REAL(ncclCommDestroy)(ranks.stranger) == ncclSuccess);
}

TEST_CASE("wrap in the background: an abort ends it at once, whoever is waited for") {
  const BesideFake beside({"GYRE_COLLECTIVES=all_reduce", "GYRE_TIMEOUT=60"});
  ncclComm_t alone = nullptr;
  CHECK(begin_rank(alone, 2, test::new_id(), 0) == ncclInProgress);
  const BesideStranger ranks;
  const auto begin = std::chrono::steady_clock::now();
  CHECK(ncclCommAbort(alone) == ncclSuccess);
  auto waiting = std::async(std::launch::async, [&] {  // first for NCCL, then, as a rule, for gyre
    const auto in_progress = [&] {
      const Status status = plugin::nccl::wrap::ready(ranks.own);
      return !status && status.error().what.find("in progress") != std::string::npos;
    };
    return test::becomes([&] { return !in_progress(); });
  });
  std::this_thread::sleep_for(50ms);
  CHECK(ncclCommAbort(ranks.own) == ncclSuccess);
  CHECK(std::chrono::steady_clock::now() - begin < 1s);
  CHECK(waiting.wait_for(1s) == std::future_status::ready);
  CHECK(REAL(ncclCommAbort)(ranks.stranger) == ncclSuccess);
}

TEST_CASE("wrap in the background: gyre's calls come after those that NCCL has launched late") {
  const BesideFake beside;
  const auto comms = begin_all<2>();
  REQUIRE(all_settled(comms));
  static test::Late late;
  bool in_order = false;
  GpuFloats one(many, 1), two(many, 1);
  HostCudaStream first, second, third, fourth;
  static HostCudaStream* const slow = &first;
  BesideFake::hooks().launching = [](CUstream_st* stream) {
    if (stream == static_cast<cudaStream_t>(*slow)) slow->add([] { late.wait(); });
  };
  CHECK(reduce(one, comms[0], first, 1) == ncclInProgress);
  CHECK(reduce(two, comms[1], third, 1) == ncclInProgress);
  CHECK(all_settled(comms));
  CHECK(reduce(one, comms[0], second) == ncclSuccess);
  second.add([&] {
    in_order = late.done;
    late.overtaken = true;
  });
  CHECK(reduce(two, comms[1], fourth) == ncclSuccess);
  for (HostCudaStream* stream : {&first, &second, &third, &fourth}) CHECK(stream->done());
  CHECK(in_order);
  CHECK(one.data()[0] == 4);
  CHECK(one.data()[1] == 2);
  for (const ncclComm_t comm : comms) CHECK(ncclCommDestroy(comm) == ncclSuccess);
}
