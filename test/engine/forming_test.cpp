// Communicators made of the ranks of another: split by color, and shrunk to those that live.
#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <future>
#include <nlohmann/json.hpp>
#include <thread>
#include <tuple>

#include "base/version.h"
#include "engine/communicator.h"
#include "engine/facts.h"
#include "test/catch.h"
#include "test/engine/backends.h"
#include "test/engine/members.h"
#include "test/folder.h"
#include "test/processes.h"
#include "test/ranks.h"
#include "test/text.h"
#include "topo/constants.h"
#include "transport/bootstrap_wire.h"
#include "transport/door.h"

using namespace gyre;
using namespace gyre::engine;
using gyre::test::all_configured;
using gyre::test::configured;
using gyre::test::contains;
using gyre::test::error_of;
using gyre::test::first_wrong;
using gyre::test::members;
using gyre::test::run_processes;
using gyre::test::run_ranks;
using gyre::test::Words;

TEST_CASE("a split makes a communicator for each color, in the order of keys", "[transport]") {
  for (const std::string& backend : test::backends()) {
    INFO(backend);
    CHECK(run_ranks(5, all_configured({"GYRE_TRANSPORT=" + backend}),
                    [](Communicator& all) {
                      const Rank rank = all.rank();
                      const auto part = all.split(rank == 3 ? -1 : rank % 2, rank < 3 ? 7 : -7);
                      const auto again = all.split(0, -rank);
                      std::string said = members(part, rank) + " | " + members(again, rank) + " | " + members(all, rank);
                      if (again) said += " | " + members((*again)->split(rank / 4, 0), rank);
                      return said;
                    }) == Words{"4 0 2 | 4 3 2 1 0 | 0 1 2 3 4 | 3 2 1 0", "1 | 4 3 2 1 0 | 0 1 2 3 4 | 3 2 1 0",
                                "4 0 2 | 4 3 2 1 0 | 0 1 2 3 4 | 3 2 1 0", "none | 4 3 2 1 0 | 0 1 2 3 4 | 3 2 1 0",
                                "4 0 2 | 4 3 2 1 0 | 0 1 2 3 4 | 4"});
  }
}

TEST_CASE("a communicator shrinks to those that are named") {
  CHECK(run_ranks(4, all_configured({}), [](Communicator& all) {
          const Rank rank = all.rank();
          const std::vector<Rank> without{0, 2};
          if (rank % 2 == 1) return members(all.shrink(without), rank) + " | " + members(all, rank);
          return members(all, rank);
        }) == Words{"0 1 2 3", "1 3 | 0 1 2 3", "0 1 2 3", "1 3 | 0 1 2 3"});
}

TEST_CASE("a grid that the parts can't have is not handed on") {
  CHECK(run_ranks(4, all_configured({"GYRE_GRID=2x2", "GYRE_ALGORITHM=bucket"}), [](Communicator& all) {
          return members(all.split(all.rank() / 2, 0), all.rank());
        }) == Words{"0 1", "0 1", "2 3", "2 3"});
}

TEST_CASE("parts of a communicator go by the constants that it has read, whatever becomes of the file") {
  const test::Folder folder;
  const std::string file = folder / "constants.json";
  auto constants = nlohmann::json::parse(*topo::constants_text(""));
  for (auto& costs : constants["direct"]) costs["meeting_us"] = 4321;
  std::ofstream(file) << constants;
  const auto words = run_ranks(3, all_configured({"GYRE_TRANSPORT=shm", "GYRE_CONSTANTS=" + file}), [&](Communicator& all) -> std::string {
    if (const auto met = all.all_gather(""); !met) return met.error().what;
    std::filesystem::remove(file);
    const auto part = all.split(0, 0);
    if (!part) return part.error().what;
    if (all.rank() == 2) return {};
    const auto rest = (*part)->shrink(std::vector<Rank>{2});
    if (!rest) return rest.error().what;
    const auto us = (*rest)->predicted_us({Collective::all_reduce, 2, DataType::float32, ReduceOp::sum, 0});
    return us && *us > 4321 ? "" : "predicted by others";
  });
  CHECK(first_wrong(words) == "");
}

TEST_CASE("a rank that waits in a split for one that stays away has a deadline") {
  const Words words = run_ranks(2, all_configured({"GYRE_DEADLINE=1"}), [](Communicator& all) {
    if (all.rank() == 0) return error_of(all.split(0, 0));
    const Error* failure = all.bootstrap().wait_for_failure(std::chrono::seconds(8));
    return failure == nullptr ? "no failure" : failure->what;
  });
  CHECK(words[0] == "rank 1 did not come to a call of all within 1 s");
  CHECK(words[1] == "rank 0 gave up: rank 1 did not come to a call of all within 1 s");
}

TEST_CASE("a split that fails says who has ended all, though word of that comes later") {
  const Words words = run_ranks(3, all_configured({}), [](Communicator& all) -> std::string {
    const Rank rank = all.rank();
    std::atomic<bool> cancelled = false;
    auto later = std::async(std::launch::async, [&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(rank == 2 ? 700 : 100));
      if (rank == 2) all.abort("enough");
      cancelled = rank == 1;
    });
    if (rank != 2) return error_of(all.split(0, rank == 1 ? -1 : 0, &cancelled));  // rank 1 is who the others join
    std::string color_and_key;
    transport::bootstrap::put(color_and_key, 0);
    transport::bootstrap::put(color_and_key, 0);
    return error_of(all.all_gather(color_and_key));  // and does not meet the others
  });
  CHECK(contains(words[0], "aborted: enough"));
  CHECK(contains(words[1], "it was told to"));
  CHECK(words[2].empty());
}

TEST_CASE("a shrink to other ranks than another's is an error on both") {
  const auto shrunk = [](Communicator& all, std::vector<Rank> without) { return error_of(all.shrink(without)); };
  CHECK(first_wrong(run_ranks(4, all_configured({"GYRE_TIMEOUT=3"}), [&](Communicator& all) -> std::string {
          if (error_of(all.shrink(std::vector<Rank>{4})) != "shrink: there is no rank 4, there are 4") return "rank 4";
          if (!contains(error_of(all.shrink(std::vector<Rank>{all.rank()})), "is to be left out, and calls")) return "itself";
          if (all.rank() == 2) return "";
          // Equally many, of which one is another.
          const std::string told = shrunk(all, {all.rank() == 3 ? 1 : 2});
          if (told.empty()) return "joined";
          return "";
        })) == "");
  const Words words = run_ranks(3, all_configured({"GYRE_TIMEOUT=3"}), [&](Communicator& all) {
    return all.rank() == 2 ? std::string() : shrunk(all, all.rank() == 0 ? std::vector<Rank>{} : std::vector<Rank>{2});
  });
  CHECK(contains(words[1], "rank 1 says the job has 2 ranks, rank 0 says 3"));
  CHECK(contains(words[0], "did not join within 3 s"));
}

TEST_CASE("after a deadline ranks shrink to those that were in time, and sum on", "[transport]") {
  for (const std::string& backend : test::backends()) {
    INFO(backend);
    CHECK(run_ranks(3, all_configured({"GYRE_TRANSPORT=" + backend}), [](Communicator& all) -> std::string {
            if (all.rank() == 1) return all.bootstrap().wait_for_failure(std::chrono::seconds(20)) == nullptr ? "no failure" : "late";
            std::vector<float> data(300'000, 1);
            const Call call{Collective::all_reduce, data.size(), DataType::float32, ReduceOp::sum, 0};
            const Status status = all.run(call, data.data(), data.data(), std::chrono::milliseconds(250));
            if (!contains(error_of(status), "nothing has moved for 0.25 s")) return "it ended: " + error_of(status);
            return members(all.shrink(std::vector<Rank>{1}), all.rank());
          }) == Words{"0 2", "late", "0 2"});
  }
}

TEST_CASE("after an abort all ranks that live meet again, and sum on", "[transport]") {
  for (const std::string& backend : test::backends()) {
    INFO(backend);
    CHECK(run_ranks(3, all_configured({"GYRE_TRANSPORT=" + backend}), [](Communicator& all) -> std::string {
            std::vector<float> data(300'000, 1);
            const Call call{Collective::all_reduce, data.size(), DataType::float32, ReduceOp::sum, 0};
            if (all.rank() == 2) all.abort("enough");  // the others wait for it in the call
            const Status status = all.run(call, data.data(), data.data());
            if (!contains(error_of(status), "aborted: enough")) return "it ended: " + error_of(status);
            return members(all.shrink(), all.rank());
          }) == Words(3, "0 1 2"));
  }
}

namespace {

/// Two processes that share two communicators. Of the second they have a sum in flight; one waits for it before it splits the first, the
/// other after. So the first can't split while the other waits, unless that moves the sum.
std::string splits_in_flight(Communicator& all) {
  auto other = all.split(0, 0);
  if (!other) return error_of(other);
  std::vector<int32_t> data(4'000'000, 1);
  const auto request = (*other)->start({Collective::all_reduce, data.size(), DataType::int32, ReduceOp::sum, 0}, data.data(), data.data());
  if (!request) return error_of(request);
  if (all.rank() == 1) {
    if (const Status done = (*other)->wait(*request); !done) return error_of(done);
  }
  const auto part = all.split(0, 0);
  if (!part) return error_of(part);
  const Status done = (*other)->wait(*request);
  return !done ? error_of(done) : data == std::vector<int32_t>(data.size(), 2) ? "" : "wrong sum";
}

std::string survives(Communicator& all, bool killed) {
  [[maybe_unused]] const Status together = all.bootstrap().barrier();
  if (killed) ::raise(SIGKILL);
  const std::string lost = members(all, all.rank());
  return contains(lost, " is gone: ") ? members(all.shrink(), all.rank()) : lost;
}

/// Of the ranks `killed` end at once, while the others call.
Words survivors(int ranks, const std::vector<Rank>& killed, const std::string& backend) {
  return run_processes(ranks, all_configured({"GYRE_TRANSPORT=" + backend}), [&](Communicator& all) {
    return survives(all, std::find(killed.begin(), killed.end(), all.rank()) != killed.end());
  });
}

}  // namespace

TEST_CASE("a split moves what is in flight elsewhere", "[processes]") {
  for (const std::string& backend : test::backends()) {
    if (backend == "loopback") continue;
    INFO(backend);
    CHECK(first_wrong(run_processes(2, all_configured({"GYRE_TRANSPORT=" + backend}), splits_in_flight)) == "");
  }
}

TEST_CASE("the living go on without killed ranks, rank 0 among them or not", "[processes]") {
  for (const std::string& backend : test::backends()) {
    if (backend == "loopback") continue;  // within a process
    INFO(backend);
    CHECK(survivors(3, {1}, backend) == Words{"0 2", "", "0 2"});
    CHECK(survivors(4, {0, 2}, backend) == Words{"", "1 3", "", "1 3"});
    CHECK(survivors(2, {0}, backend) == Words{"", "1"});
  }
}

TEST_CASE("a rank of another build, and one that says what can't be read, is named before anything is chosen") {
  const auto said_beside = [](const std::string& other) {
    const transport::Door door = *transport::open_door();
    const auto join = [&](Rank rank) {
      transport::Rendezvous at = door.rendezvous(rank, 2);
      at.job = 1;
      return transport::Bootstrap::join(at);
    };
    std::thread beside([&] {
      auto job = join(1);
      if (job) std::ignore = (*job)->all_gather(other);
    });
    std::string said = "no bootstrap";
    if (auto job = join(0); job) said = error_of(exchange_facts(**job, configured({}), ""));
    beside.join();
    return said;
  };
  const std::string here(profile_version);
  CHECK(said_beside(R"({"version": "0.1.0+1"})") == "ranks differ: rank 1 runs gyre \"0.1.0+1\", this one \"" + here + "\"");
  CHECK(said_beside("[]") == "ranks differ: rank 1 runs gyre \"unknown\", this one \"" + here + "\"");
  CHECK(contains(said_beside(R"({"version": ")" + here + "\"}"), "rank 1 tells of itself what can't be read: "));
}
