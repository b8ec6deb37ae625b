// Calls that differ though their messages never meet: a sender may be done, and elsewhere, when its peer waits in vain.
#include <fmt/format.h>

#include <array>
#include <chrono>
#include <future>
#include <thread>

#include "engine/communicator.h"
#include "perf/reference.h"
#include "test/catch.h"
#include "test/engine/backends.h"
#include "test/ranks.h"
#include "test/text.h"
#include "transport/bootstrap_history.h"

using namespace gyre;
using namespace gyre::engine;
using gyre::test::all_configured;
using gyre::test::contains;
using gyre::test::run_ranks;
using gyre::test::Words;
using transport::bootstrap::compare_histories;
using transport::bootstrap::History;
using transport::bootstrap::Made;

namespace {

using Clock = std::chrono::steady_clock;
using Program = std::vector<Call>;

Call call(Collective collective, Rank root = 0, size_t count = 64) { return {collective, count, DataType::float32, ReduceOp::sum, root}; }

const Call all_reduce = call(Collective::all_reduce);

/// The first error among these calls; empty: none. A broadcast of no root makes no call but one that is refused.
std::string first_error(Communicator& communicator, const Program& program) {
  std::vector<float> input(1024);
  std::vector<float> output(1024);
  for (const Call& c : program) {
    const Status status = communicator.run(c, input.data(), output.data());
    if (!status && status.error().code != Code::invalid_argument) return status.error().what;
  }
  return {};
}

/// Two ranks run these programs; each that ends in an error must be told of it soon, and in these words.
void are_told(const Program& one, const Program& other, std::initializer_list<const char*> parts, int ranks = 2) {
  for (const std::string& backend : test::backends()) {
    const auto start = Clock::now();
    const Words words = run_ranks(ranks, all_configured({"GYRE_TRANSPORT=" + backend}), [&](Communicator& communicator) {
      const std::string error = first_error(communicator, communicator.rank() == 0 ? one : other);
      if (error.empty()) std::this_thread::sleep_for(std::chrono::seconds(3));  // computes, out of any call
      return error;
    });
    for (size_t rank = 0; rank < words.size(); ++rank) {
      INFO(backend << ", rank " << rank << ": " << words[rank]);
      for (const char* part : parts) CHECK(contains(words[rank], part));
    }
    CHECK(Clock::now() - start < std::chrono::seconds(8));
  }
}

Call broadcast(Rank root, size_t count = 64) { return call(Collective::broadcast, root, count); }

}  // namespace

TEST_CASE("roots that differ are found though nobody waits in that call", "[transport]") {
  are_told({broadcast(0), all_reduce}, {broadcast(1), all_reduce},
           {"calls differ: rank 1 has root=1, rank 0 has root=0 (call 0: broadcast"});
}

TEST_CASE("a collective without an answer and another one are found to differ", "[transport]") {
  const auto differ = {"calls differ: rank 1 had ", "rank 0 had ", " (call 0)"};
  are_told({broadcast(0), all_reduce}, {all_reduce, all_reduce}, differ);
  are_told({call(Collective::reduce, 1), all_reduce}, {call(Collective::gather, 1), all_reduce}, differ);
  are_told({call(Collective::scatter), all_reduce}, {call(Collective::reduce, 1), all_reduce}, differ);
}

TEST_CASE("counts that differ in a broadcast are found", "[transport]") {
  are_told({broadcast(0, 16), all_reduce}, {broadcast(0, 17), all_reduce}, {"rank 1 has count=17, rank 0 has count=16 (call 0: broadcast"});
}

TEST_CASE("calls that another rank has not made are found", "[transport]") {
  Program many(20, broadcast(0));
  many.push_back(all_reduce);
  are_told(many, {all_reduce}, {"rank 0 had broadcast", "rank 1 had all_reduce", "(call 0)"});
}

TEST_CASE("what one rank refuses is told to those that wait for it", "[transport]") {
  const Call refused = broadcast(7);
  are_told({refused, all_reduce}, {broadcast(0), all_reduce},
           {"rank 0 had refused broadcast", "rank 1 had broadcast count=64", "(call 0)"});
}

TEST_CASE("what all ranks refuse is no difference", "[transport]") {
  for (const std::string& backend : test::backends()) {
    CHECK(run_ranks(2, all_configured({"GYRE_TRANSPORT=" + backend}), [&](Communicator& communicator) {
            return first_error(communicator, {broadcast(7 + communicator.rank()), all_reduce, broadcast(0), all_reduce});
          }) == Words{"", ""});
  }
}

TEST_CASE("a rank that waits is told of one that has made another call and left", "[transport]") {
  const auto body = [](Communicator& communicator) {
    if (communicator.rank() != 2) return first_error(communicator, {broadcast(2)});
    std::this_thread::sleep_for(std::chrono::milliseconds(1500));
    return first_error(communicator, {call(Collective::gather, 0)});
  };
  for (const auto& [backend, words] : test::run_over_backends(3, body)) {
    for (const Rank rank : {0, 1}) {
      INFO(backend << ": " << words[static_cast<size_t>(rank)]);
      CHECK(contains(words[static_cast<size_t>(rank)], "rank 2 had gather"));
      CHECK(contains(words[static_cast<size_t>(rank)], "ranks 0, 1 had broadcast"));
    }
  }
}

TEST_CASE("a rank that waits for all ranks before a call in which another waits is found", "[transport]") {
  const auto body = [](Communicator& communicator) {
    std::string error = first_error(communicator, Program(communicator.rank() == 0 ? 1 : 2, all_reduce));
    if (const Status all = communicator.bootstrap().barrier(); error.empty() && !all) error = all.error().what;
    return error;
  };
  for (const auto& [backend, words] : test::run_over_backends(2, body)) {
    for (const std::string& word : words) {
      INFO(backend << ": " << word);
      CHECK(contains(word, "calls are in different orders: rank 0 waits for all ranks before call 1, rank 1 waits in it (all_reduce"));
    }
  }
}

TEST_CASE("a rank that is late is no error", "[transport]") {
  std::vector<std::future<std::vector<test::OverBackend>>> jobs;
  for (const Rank late : {0, 1, 2}) {
    const auto body = [late](Communicator& communicator) {
      std::string error = first_error(communicator, {broadcast(late), all_reduce, broadcast(7)});
      if (communicator.rank() == late) std::this_thread::sleep_for(std::chrono::milliseconds(2700));
      return error + first_error(communicator, {broadcast(late), call(Collective::gather, 1), all_reduce});
    };
    jobs.push_back(std::async(std::launch::async, test::run_over_backends, 3, body));
  }
  for (auto& job : jobs) {
    for (const auto& [backend, words] : job.get()) CHECK(words == Words{"", "", ""});
  }
}

TEST_CASE("a history holds the latest calls and what they were") {
  History history;
  history.name(1, "broadcast count=8 root=0");
  for (uint64_t number = 0; number < 300; ++number) history.add(number, number == 299 ? 2 : 1, number == 298);
  const std::vector<Made> calls = transport::bootstrap::take_history(std::string_view(history.message(0).payload).substr(8));
  REQUIRE(calls.size() == History::kept);
  CHECK(calls.front().number == 300 - History::kept);
  CHECK(calls.back().text == "plan=0x2");
  CHECK(calls[History::kept - 2].refused);
  CHECK(calls[History::kept - 2].text == "broadcast count=8 root=0");
  for (size_t i = 1; i < calls.size(); ++i) CHECK(calls[i].number == calls[i - 1].number + 1);
}

TEST_CASE("histories are compared at the first call that differs") {
  const Made a{4, 1, false, "broadcast count=8 root=0"};
  const Made b{4, 2, false, "broadcast count=8 root=1"};
  const Made c{4, 3, false, "gather count=8 root=1"};
  const Made later{5, 4, false, "barrier"};
  const Made none{4, 5, true, "refused broadcast: null buffer"};
  const Made neither{4, 6, true, "refused broadcast: there is no rank 9"};
  CHECK(compare_histories({{a}, {a, later}, {}}).empty());
  CHECK(compare_histories({{none}, {neither}}).empty());
  CHECK(compare_histories({{a}, {}, {later}}).empty());
  CHECK(compare_histories({{b}, {a, later}, {a}}) == "calls differ: rank 0 has root=1, ranks 1, 2 have root=0 (call 4: broadcast count=8)");
  CHECK(compare_histories({{a}, {c}}) == "calls differ: rank 1 had gather count=8 root=1, rank 0 had broadcast count=8 root=0 (call 4)");
  CHECK(compare_histories({{a}, {none}, {a}}) ==
        "calls differ: rank 1 had refused broadcast: null buffer, ranks 0, 2 had broadcast count=8 root=0 (call 4)");
}
