// gyre beside an NCCL whose communicators do not block: they are made, split and finalized in the background, and so are gyre's.
#include <atomic>
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
using test::settled;

namespace {

const char* const given_up = "gyre's part was given up with the communicator";

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

bool has_begun(ncclResult_t result) { return result == ncclSuccess || result == ncclInProgress; }

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
  for (const ncclComm_t comm : comms) CHECK(has_begun(ncclCommFinalize(comm)));
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

TEST_CASE("wrap in the background: where some ranks block and others don't NCCL runs all") {
  const BesideFake beside;
  const test::KeptLog log;
  std::array<ncclComm_t, 2> comms{};
  const ncclUniqueId id = test::new_id();
  CHECK(begin_rank(comms[0], 2, id, 0) == ncclInProgress);
  CHECK(ncclCommInitRank(&comms[1], 2, id, 1) == ncclSuccess);
  ncclResult_t state = ncclInProgress;
  CHECK(ncclCommGetAsyncError(comms[1], &state) == ncclSuccess);
  CHECK(state == ncclSuccess);
  CHECK(all_settled(comms));
  CHECK(log.count("rank 1 has a communicator that blocks, rank 0 has a communicator that does not block") == 2);
  CHECK(sums(comms, many) == "GroupStart AllReduce AllReduce GroupEnd ");
  for (const ncclComm_t comm : comms) CHECK(ncclCommDestroy(comm) == ncclSuccess);
}

// As NCCL does its function says success, and programs may wait for no more than the handle.
TEST_CASE("wrap in the background: parts of a communicator's ranks are there when they are gyre's, too") {
  const BesideFake beside;
  const auto comms = begin_all<4>();
  REQUIRE(all_settled(comms));
  std::array<ncclComm_t, 4> parts{};
  for (size_t r = 0; r < 4; ++r)
    CHECK(ncclCommSplit(comms.at(r), r == 3 ? NCCL_SPLIT_NOCOLOR : 5, 0, &parts.at(r), nullptr) == ncclSuccess);
  for (size_t r = 0; r < 3; ++r) CHECK(test::becomes([&] { return std::atomic_ref(parts.at(r)).load() != nullptr; }));
  CHECK(sums(std::array{parts[0], parts[1], parts[2]}, many) == "GroupStart GroupEnd ");
  CHECK(all_settled(comms));
  CHECK(parts[3] == nullptr);
  CHECK(all_settled(parts));
  CHECK(sums(comms, many) == "GroupStart GroupEnd ");
  for (const ncclComm_t comm : parts) CHECK((comm == nullptr || ncclCommDestroy(comm) == ncclSuccess));
  for (const ncclComm_t comm : comms) CHECK(ncclCommDestroy(comm) == ncclSuccess);
}

TEST_CASE("wrap in the background: an abort ends a split that others stay away from") {
  const BesideFake beside;
  const test::KeptLog log;
  const auto comms = begin_all<2>();
  REQUIRE(all_settled(comms));
  ncclComm_t part = nullptr;
  CHECK(ncclCommSplit(comms[0], 0, 0, &part, nullptr) == ncclSuccess);
  ncclResult_t state = ncclSuccess;
  CHECK(ncclCommGetAsyncError(comms[0], &state) == ncclSuccess);
  CHECK(state == ncclInProgress);
  const auto begin = std::chrono::steady_clock::now();
  CHECK(ncclCommAbort(comms[0]) == ncclSuccess);
  CHECK(std::chrono::steady_clock::now() - begin < 1s);
  CHECK(test::becomes([&] { return log.count(given_up) == 1; }));
  CHECK(part == nullptr);
  CHECK(ncclCommAbort(comms[1]) == ncclSuccess);
}

TEST_CASE("wrap in the background: a communicator that the program has given up is ready all the same") {
  const BesideFake beside;
  const auto comms = begin_all<3>();
  REQUIRE(all_settled(comms));
  std::array<ncclComm_t, 2> rest{};
  const auto shrink = [&](size_t rank) {
    int without = 2;
    return ncclCommShrink(comms.at(rank), &without, 1, &rest.at(rank), nullptr, NCCL_SHRINK_ABORT);
  };
  auto other = std::async(std::launch::async, shrink, size_t{1});
  CHECK(shrink(0) == ncclSuccess);
  CHECK(other.get() == ncclSuccess);
  for (const size_t r : {size_t{0}, size_t{1}}) CHECK(settled(comms.at(r)) == ncclSuccess);
  CHECK(test::becomes([&] { return settled(comms[2]) == ncclRemoteError; }));  // who has not asked for it
  CHECK(sums(rest, many) == "GroupStart GroupEnd ");
  for (const ncclComm_t comm : rest) CHECK(ncclCommDestroy(comm) == ncclSuccess);
  for (const ncclComm_t comm : comms) CHECK(ncclCommAbort(comm) == ncclSuccess);
}

TEST_CASE("wrap in the background: what NCCL is to encrypt by now is NCCL's, whatever it is made of") {
  const BesideFake beside;
  const test::KeptLog log;
  const auto comms = begin_all<2>();
  REQUIRE(all_settled(comms));
  ncclEncryptionConfig_t encryption{sizeof encryption, NCCL_CONFIG_MAGIC, 23200, NCCL_ENCRYPTION_MODE_PSK, "a key that is long enough"};
  CHECK(ncclSetEncryption(&encryption) == ncclSuccess);
  std::array<ncclComm_t, 2> parts{};
  for (size_t r = 0; r < 2; ++r) CHECK(ncclCommSplit(comms.at(r), 0, 0, &parts.at(r), nullptr) == ncclSuccess);
  CHECK(all_settled(comms));
  CHECK(all_settled(parts));
  encryption.mode = NCCL_ENCRYPTION_MODE_NONE;
  CHECK(ncclSetEncryption(&encryption) == ncclSuccess);
  CHECK(log.count("rank 0: NCCL is to encrypt its connections") == 2);
  CHECK(sums(parts, many) == "GroupStart AllReduce AllReduce GroupEnd ");
  for (const ncclComm_t comm : parts) CHECK(ncclCommDestroy(comm) == ncclSuccess);
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
  const ncclCollConfig_t config{sizeof config, NCCL_CONFIG_MAGIC, 23200, nullptr, 1, 2, 1, 1, nullptr, 1, 0, 0, nullptr};
  CHECK(ncclAllReduceConfig(data.data(), data.data(), many, ncclFloat32, ncclSum, comms[0], stream, &config) == ncclInvalidArgument);
  CHECK(newly_to_nccl() == "");
  CHECK(std::string(ncclGetLastError(comms[0])).find("in progress") != std::string::npos);
  int count = 0;
  ncclComm_t grown = nullptr;
  CHECK(ncclCommCount(comms[0], &count) == ncclInvalidArgument);
  CHECK(std::string(ncclGetLastError(comms[0])).find("ncclCommCount: the communicator is in progress") != std::string::npos);
  CHECK(ncclCommWindowDeregister(comms[0], nullptr) == ncclInvalidArgument);
  CHECK(ncclCommGrow(comms[0], 3, nullptr, -1, &grown, nullptr) == ncclInvalidArgument);
  CHECK(begin_rank(comms[1], 2, id, 1) == ncclInProgress);
  CHECK(all_settled(comms));
  CHECK(ncclCommCount(comms[0], &count) == ncclSuccess);
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

TEST_CASE("wrap in the background: a rank that NCCL could not make has NCCL's error, and the others are NCCL's") {
  const BesideFake beside({"GYRE_COLLECTIVES=all_reduce", "GYRE_TIMEOUT=1"});
  const test::KeptLog log;
  ::setenv("TEST_FAKE_FAILS", "1", 1);
  const auto comms = begin_all<2>();
  CHECK(settled(comms[1]) == ncclSystemError);
  ::unsetenv("TEST_FAKE_FAILS");
  CHECK(settled(comms[0]) == ncclSuccess);
  CHECK(log.count("rank 0 of 2: NCCL runs all calls of this communicator") == 1);
  for (const ncclComm_t comm : comms) CHECK(ncclCommAbort(comm) == ncclSuccess);
}

TEST_CASE("wrap in the background: an abort ends it at once, whoever is waited for") {
  const BesideFake beside({"GYRE_COLLECTIVES=all_reduce", "GYRE_TIMEOUT=60"});
  const test::KeptLog log;
  ncclComm_t alone = nullptr;
  CHECK(begin_rank(alone, 2, test::new_id(), 0) == ncclInProgress);
  const BesideStranger ranks;
  const auto begin = std::chrono::steady_clock::now();
  CHECK(ncclCommAbort(alone) == ncclSuccess);
  auto waiting = std::async(std::launch::async, [&] {  // first for NCCL, then, as a rule, for gyre
    const auto in_progress = [&] {
      const auto status = plugin::nccl::wrap::ready_beside(ranks.own);
      return !status && status.error().what.find("in progress") != std::string::npos;
    };
    return test::becomes([&] { return !in_progress(); });
  });
  std::this_thread::sleep_for(50ms);
  CHECK(ncclCommAbort(ranks.own) == ncclSuccess);
  CHECK(std::chrono::steady_clock::now() - begin < 1s);
  CHECK(waiting.wait_for(1s) == std::future_status::ready);
  CHECK(test::becomes([&] { return log.count(given_up) == 2; }));
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

TEST_CASE("wrap in the background: a late launch of which another thread has heard is marked late, and no call of gyre's comes before it") {
  const BesideFake beside;
  const auto comms = begin_all<2>();
  REQUIRE(all_settled(comms));
  static test::Late late;
  bool in_order = false;
  std::atomic<bool> done_since{false};
  GpuFloats one(many, 1), two(many, 1);
  HostCudaStream first, second, third, fourth;
  static HostCudaStream* const slow = &first;
  BesideFake::hooks().launching = [](CUstream_st* stream) {
    if (stream == static_cast<cudaStream_t>(*slow)) slow->add([] { late.wait(); });
  };
  CHECK(reduce(one, comms[0], first, 1) == ncclInProgress);
  CHECK(reduce(two, comms[1], third, 1) == ncclInProgress);
  CHECK(std::async(std::launch::async, [&] { return all_settled(comms); }).get());
  first.add([&] { done_since = true; });  // which the mark comes after, too
  CHECK(reduce(one, comms[0], second) == ncclSuccess);
  second.add([&] {
    in_order = late.done && done_since;
    late.overtaken = true;
  });
  CHECK(reduce(two, comms[1], fourth) == ncclSuccess);
  for (HostCudaStream* stream : {&first, &second, &third, &fourth}) CHECK(stream->done());
  CHECK(in_order);
  CHECK(one.data()[0] == 4);
  CHECK(one.data()[1] == 2);
  for (const ncclComm_t comm : comms) CHECK(ncclCommDestroy(comm) == ncclSuccess);
}

TEST_CASE("wrap in the background: a call of gyre's is refused until NCCL has launched what came before, as NCCL refuses its own") {
  const BesideFake beside;
  const auto comms = begin_all<2>();
  REQUIRE(all_settled(comms));
  static std::atomic<bool> goes_on{false};
  goes_on = false;
  GpuFloats one(many, 1), two(many, 1);
  {
    HostCudaStream first, second;
    BesideFake::hooks().launching = [](CUstream_st*) { test::becomes([] { return goes_on.load(); }); };
    CHECK(reduce(one, comms[0], first, 1) == ncclInProgress);
    CHECK(reduce(two, comms[1], second, 1) == ncclInProgress);
    for (const size_t count : {many, size_t{1}}) CHECK(reduce(one, comms[0], first, count) == ncclInvalidArgument);
    goes_on = true;
    CHECK(all_settled(comms));
    CHECK((first.done() && second.done()));
  }
  CHECK(sums(comms, many) == "GroupStart GroupEnd ");  // behind calls on streams that are no more
  for (const ncclComm_t comm : comms) CHECK(ncclCommDestroy(comm) == ncclSuccess);
}

TEST_CASE("wrap in the background: what gyre has failed of is heard while NCCL is at work") {
  const BesideFake beside;
  const auto comms = begin_all<2>();
  REQUIRE(all_settled(comms));
  static std::atomic<bool> goes_on{false}, launched{false};
  goes_on = launched = false;
  GpuFloats one(many, 1), two(many, 1);
  HostCudaStream first, second;
  BesideFake::hooks().launching = [](CUstream_st*) {
    test::becomes([] { return goes_on.load(); });
    launched = true;
  };
  CHECK(reduce(two, comms[1], second) == ncclSuccess);
  CHECK(reduce(one, comms[0], first, 1) == ncclInProgress);
  CHECK(ncclCommAbort(comms[1]) == ncclSuccess);
  CHECK(settled(comms[0]) == ncclRemoteError);
  CHECK(!launched);
  goes_on = true;
  CHECK(ncclCommAbort(comms[0]) == ncclSuccess);
  CHECK((first.done_within(1s) && second.done_within(1s)));
}

TEST_CASE("wrap in the background: it is finalized when its GPU has done what gyre gave it, and nobody waits for that") {
  const BesideFake beside;
  const auto comms = begin_all<2>();
  REQUIRE(all_settled(comms));
  GpuFloats one(many, 1), two(many, 1);
  HostCudaStream first, second;
  CHECK(reduce(one, comms[0], first) == ncclSuccess);
  CHECK(ncclCommFinalize(comms[0]) == ncclInProgress);
  ncclResult_t state = ncclSuccess;
  CHECK(ncclCommGetAsyncError(comms[0], &state) == ncclSuccess);
  CHECK(state == ncclInProgress);
  CHECK(reduce(two, comms[1], second) == ncclSuccess);
  CHECK(settled(comms[0]) == ncclSuccess);
  CHECK(one.all(2));
  for (const ncclComm_t comm : comms) CHECK(ncclCommDestroy(comm) == ncclSuccess);
}

TEST_CASE("wrap in the background: memory of a window is NCCL's on all ranks, whatever has come of it by then") {
  const BesideFake beside;
  const auto comms = begin_all<2>();
  REQUIRE(all_settled(comms));
  std::array<ncclWindow_t, 2> windows{};
  GpuFloats one(many, 1), two(many, 1);
  HostCudaStream first, second;
  BesideFake::hooks().has_no_windows = 1;  // as it looks while NCCL makes it
  CHECK(ncclCommWindowRegister(comms[0], one.data(), many * 4, &windows[0], NCCL_WIN_COLL_SYMMETRIC) == ncclSuccess);
  CHECK(ncclCommWindowRegister(comms[1], two.data(), many * 4, &windows[1], NCCL_WIN_COLL_SYMMETRIC) == ncclSuccess);
  newly_to_nccl();
  CHECK(reduce(one, comms[0], first) == ncclSuccess);
  CHECK(reduce(two, comms[1], second) == ncclSuccess);
  CHECK(newly_to_nccl() == "AllReduce AllReduce ");
  CHECK((first.done() && second.done() && one.all(2)));
  CHECK(sums(comms, many) == "GroupStart GroupEnd ");
  for (const ncclComm_t comm : comms) CHECK(ncclCommDestroy(comm) == ncclSuccess);
}
