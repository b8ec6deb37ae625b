// A rank that is killed in the midst of calls and splits, wherever that is: the living go on without it.
#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <thread>

#include "engine/communicator.h"
#include "test/catch.h"
#include "test/engine/backends.h"
#include "test/engine/heap_allocator.h"
#include "test/engine/members.h"
#include "test/processes.h"
#include "test/text.h"

using namespace gyre;
using namespace gyre::engine;
using gyre::test::configured;
using gyre::test::contains;
using gyre::test::error_of;
using gyre::test::members;
using gyre::test::run_processes;
using gyre::test::Words;
using std::chrono::milliseconds;

namespace {

constexpr Rank killed_rank = 1;

/// The rank to be killed is, a moment after all are here.
Status all_begin(Communicator& all, milliseconds moment) {
  GYRE_TRY(all.bootstrap().barrier());
  if (all.rank() == killed_rank) {
    std::thread([moment] {
      std::this_thread::sleep_for(moment);
      ::kill(::getpid(), SIGKILL);
    }).detach();
  }
  return {};
}

/// After what a rank has been told: those that it goes on with.
std::string goes_on(Communicator& all, const std::string& told) {
  if (!contains(told, fmt::format("rank {} (", killed_rank)) || !contains(told, ") is gone: ")) return "told: " + told;
  return members(all.shrink(), all.rank());
}

/// Two operations in flight, again and again.
template <class Memory>
std::string killed_in_calls(Communicator& all, Collective collective, milliseconds moment) {
  constexpr size_t count = 2 << 20;  // of floats: 8 MiB
  const Call call{collective, count, DataType::float32, ReduceOp::sum, 0};
  const bool gathers = collective == Collective::all_gather;
  Memory input(count, 1), first(gathers ? count * static_cast<size_t>(all.size()) : count), second(first.size());
  const auto expected = static_cast<float>(gathers ? 1 : all.size());
  if (const Status begun = all_begin(all, moment); !begun) return error_of(begun);
  for (;;) {
    std::array<Memory*, 2> outputs{&first, &second};
    std::array<Request, 2> requests;
    for (size_t i = 0; i < 2; ++i) {
      std::fill(outputs[i]->begin(), outputs[i]->end(), 0.0F);
      const auto request = all.start(call, input.data(), outputs[i]->data());
      if (!request) return goes_on(all, error_of(request));
      requests[i] = *request;
    }
    for (size_t i = 0; i < 2; ++i) {
      if (const Status done = all.wait(requests[i]); !done) return goes_on(all, error_of(done));
      if (*outputs[i] != Memory(first.size(), expected)) return "wrong result";
    }
  }
}

std::string killed_in_splits(Communicator& all, milliseconds moment) {
  if (const Status begun = all_begin(all, moment); !begun) return error_of(begun);
  for (;;) {
    const auto part = all.split(0, 0);
    if (!part) return goes_on(all, error_of(part));
  }
}

/// `hosts`: of each rank, "aab". With a deadline, so that a wait in vain is an error.
test::RankConfig placed_on(const std::string& transport, const std::string& hosts) {
  return [=](Rank rank) {
    return configured({"GYRE_TRANSPORT=" + transport, "GYRE_ATTACH=2", "GYRE_DEADLINE=10", "GYRE_TIMEOUT=10",
                       fmt::format("GYRE_HOSTID=host-{}", hosts[static_cast<size_t>(rank)])});
  };
}

}  // namespace

TEST_CASE("the living go on without a rank that is killed within large calls, with others in flight", "[processes]") {
  for (const std::string& backend : test::backends()) {
    if (backend == "loopback") continue;  // within a process
    INFO(backend);
    const auto survivors = [&](const std::string& hosts, auto body) {
      return run_processes(static_cast<int>(hosts.size()), placed_on(backend, hosts), body);
    };
    for (const milliseconds moment : {milliseconds(0), milliseconds(17), milliseconds(40)}) {
      CHECK(survivors("aaa", [&](Communicator& all) { return killed_in_calls<std::vector<float>>(all, Collective::all_reduce, moment); }) ==
            Words{"0 2", "", "0 2"});
      if (backend != "shm") continue;
      CHECK(survivors("aaa", [&](Communicator& all) {
              return killed_in_calls<test::HeapVector<float>>(all, Collective::all_reduce, moment);
            }) == Words{"0 2", "", "0 2"});
      CHECK(survivors("aa", [&](Communicator& all) { return killed_in_calls<std::vector<float>>(all, Collective::all_gather, moment); }) ==
            Words{"0", ""});
    }
  }
}

TEST_CASE("the living go on without a rank that is killed within splits", "[processes]") {
  for (const std::string& backend : test::backends()) {
    if (backend == "loopback") continue;
    INFO(backend);
    for (const milliseconds moment : {milliseconds(0), milliseconds(7), milliseconds(20), milliseconds(33)}) {
      CHECK(run_processes(3, placed_on(backend, "aaa"), [&](Communicator& all) { return killed_in_splits(all, moment); }) ==
            Words{"0 2", "", "0 2"});
    }
  }
}

TEST_CASE("the living go on without a rank that is killed where ranks share hosts", "[processes]") {
  const auto backends = test::backends();
  if (std::find(backends.begin(), backends.end(), "tcp") == backends.end()) return;  // nothing reaches another host
  CHECK(run_processes(4, placed_on("auto", "aabb"), [](Communicator& all) {
          return killed_in_calls<std::vector<float>>(all, Collective::all_reduce, milliseconds(30));
        }) == Words{"0 2 3", "", "0 2 3", "0 2 3"});
}
