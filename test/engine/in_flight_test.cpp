// Operations that are begun without waiting: on one communicator, on several in different orders, beside calls that wait; and what ends
// them early: deadlines and aborts.
#include <fmt/format.h>

#include <algorithm>
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

using namespace gyre;
using namespace gyre::engine;
using gyre::test::all_configured;
using gyre::test::configured;
using gyre::test::contains;
using gyre::test::error_of;
using gyre::test::first_wrong;
using gyre::test::run_ranks;
using gyre::test::Words;
using std::chrono::milliseconds;

namespace {

using Clock = std::chrono::steady_clock;

/// An all-reduce of so many floats in place, and whether its result is right.
struct Sum {
  explicit Sum(size_t count) : data(count) {}
  void fill(const Communicator& c) { perf::fill_input(data.data(), data.size(), DataType::float32, ReduceOp::sum, c.rank(), c.size()); }
  Call call() const { return {Collective::all_reduce, data.size(), DataType::float32, ReduceOp::sum, 0}; }
  bool right(const Communicator& c) const {
    return perf::count_wrong(data.data(), data.size(), DataType::float32, ReduceOp::sum, c.size()) == 0;
  }
  std::vector<float> data;
};

const std::vector<size_t> counts{1, 3000, 100, 700'000, 30'000, 0, 7};

std::vector<Sum> filled_sums(const Communicator& communicator) {
  std::vector<Sum> sums(counts.begin(), counts.end());
  for (Sum& sum : sums) sum.fill(communicator);
  return sums;
}

std::string first_wrong_sum(const Communicator& communicator, const std::vector<Sum>& sums) {
  for (const Sum& sum : sums) {
    if (!sum.right(communicator)) return fmt::format("wrong sum of {}", sum.data.size());
  }
  return {};
}

/// All begun at once, waited for in the order given.
std::string in_flight(Communicator& communicator, bool backwards, bool tested) {
  std::vector<Sum> sums = filled_sums(communicator);
  std::vector<Request> requests;
  for (Sum& sum : sums) {
    const auto request = communicator.start(sum.call(), sum.data.data(), sum.data.data());
    if (!request) return error_of(request);
    requests.push_back(*request);
  }
  if (backwards) std::reverse(requests.begin(), requests.end());
  for (const Request request : requests) {
    if (!tested) {
      if (const Status status = communicator.wait(request); !status) return status.error().what;
      continue;
    }
    for (;;) {
      const auto done = communicator.test(request);
      if (!done) return done.error().what;
      if (*done) break;
    }
  }
  return first_wrong_sum(communicator, sums);
}

}  // namespace

TEST_CASE("operations in flight end in their order, whatever is waited for first", "[transport]") {
  for (const std::string& backend : test::backends()) {
    for (const int ranks : {1, 2, 3}) {
      INFO(backend << ", " << ranks << " ranks");
      CHECK(first_wrong(run_ranks(ranks, all_configured({"GYRE_TRANSPORT=" + backend}), [](Communicator& communicator) {
              std::string wrong = in_flight(communicator, false, false);
              if (wrong.empty()) wrong = in_flight(communicator, communicator.rank() == 0, communicator.rank() == 1);
              return wrong;
            })) == "");
    }
  }
}

TEST_CASE("calls that wait, and groups, take their turn behind operations in flight") {
  CHECK(first_wrong(run_ranks(3, all_configured({}), [](Communicator& communicator) -> std::string {
          std::vector<Sum> sums = filled_sums(communicator);
          const Rank next = (communicator.rank() + 1) % 3, last = (communicator.rank() + 2) % 3;
          std::vector<int32_t> sent(50'000, communicator.rank()), received(50'000, -1);
          const std::array<Transfer, 2> group{Transfer{Transfer::Kind::send, next, sent.data(), sent.size(), DataType::int32},
                                              Transfer{Transfer::Kind::receive, last, received.data(), received.size(), DataType::int32}};
          for (size_t i = 0; i + 1 < sums.size(); ++i) {
            if (auto begun = communicator.start(sums[i].call(), sums[i].data.data(), sums[i].data.data()); !begun) return error_of(begun);
          }
          const auto exchange = communicator.start(group);
          if (!exchange) return error_of(exchange);
          if (const Status status = communicator.run(sums.back().call(), sums.back().data.data(), sums.back().data.data()); !status)
            return error_of(status);
          if (const auto done = communicator.test(*exchange); !done || !*done) return "the group is not done";
          if (received != std::vector<int32_t>(50'000, last)) return "wrong data of the group";
          return first_wrong_sum(communicator, sums);
        })) == "");
}

TEST_CASE("ranks may wait for several communicators' operations in different orders", "[transport]") {
  for (const std::string& backend : test::backends()) {
    INFO(backend);
    const transport::Door door = *transport::open_door();
    CHECK(first_wrong(run_ranks(2, all_configured({"GYRE_TRANSPORT=" + backend}), [&](Communicator& first) -> std::string {
            transport::Rendezvous rendezvous = door.rendezvous(first.rank(), 2);
            rendezvous.job = 2;
            auto second = Communicator::create(rendezvous, configured({"GYRE_TRANSPORT=" + backend}));
            if (!second) return error_of(second);
            std::array<Communicator*, 2> both{&first, second->get()};
            std::array<Sum, 2> sums{Sum(1'000'000), Sum(1'000'000)};
            std::array<Request, 2> requests;
            for (size_t i = 0; i < 2; ++i) {
              sums[i].fill(*both[i]);
              const auto request = both[i]->start(sums[i].call(), sums[i].data.data(), sums[i].data.data());
              if (!request) return error_of(request);
              requests[i] = *request;
            }
            for (size_t i = 0; i < 2; ++i) {
              const size_t now = first.rank() == 0 ? i : 1 - i;
              if (const Status status = both[now]->wait(requests[now]); !status) return error_of(status);
              if (!sums[now].right(first)) return "wrong sum";
            }
            return "";
          })) == "");
  }
}

TEST_CASE("a request that was not made is refused, and so is a wrong call") {
  CHECK(first_wrong(run_ranks(1, all_configured({}), [](Communicator& communicator) -> std::string {
          if (error_of(communicator.wait({1})) != "there is no request 1, 0 were made") return "a request of the future";
          if (error_of(communicator.wait({0})) != "there is no request 0, 0 were made") return "request 0";
          const auto wrong = communicator.start(Sum(8).call(), nullptr, nullptr);
          return wrong || wrong.error().code != Code::invalid_argument ? "null buffers taken" : "";
        })) == "");
}

namespace {

/// Rank 0 makes a call that rank 1 does not come to; what both are told by the time that is over.
Words told_late(const std::string& backend, Collective collective, size_t count, const std::vector<std::string>& settings,
                TimeLimit limit) {
  std::vector<std::string> all{"GYRE_TRANSPORT=" + backend};
  all.insert(all.end(), settings.begin(), settings.end());
  return run_ranks(2, all_configured(all), [&](Communicator& communicator) {
    std::vector<float> data(2 * count);  // a scatter's input
    const Call call{collective, count, DataType::float32, ReduceOp::sum, 0};
    if (communicator.rank() == 0) return error_of(communicator.run(call, data.data(), data.data(), limit));
    const Error* failure = communicator.bootstrap().wait_for_failure(std::chrono::seconds(8));
    return failure == nullptr ? "no failure" : error_of(communicator.run(call, data.data(), data.data()));
  });
}

void tells_of_the_deadline(const Words& words, const std::string& backend, const std::string& call, const char* limit) {
  for (const std::string& said : words) {
    INFO(said);
    CHECK(contains(said, fmt::format("nothing has moved for {} s; rank 0 was in call 0, {}", limit, call)));
    CHECK(contains(said, "rank 1"));
    CHECK((contains(said, " in step ") || contains(said, "for its last sends")));
    CHECK(contains(said, ", by " + backend));
  }
  CHECK(contains(words[1], "rank 0 gave up: "));
}

}  // namespace

TEST_CASE("a deadline names rank, step and link, on all ranks", "[transport]") {
  for (const std::string& backend : test::backends()) {
    INFO(backend);
    tells_of_the_deadline(told_late(backend, Collective::all_reduce, 8, {"GYRE_DEADLINE=1"}, {}), backend,
                          "all_reduce count=8 type=float op=sum", "1");
    // What slots and TCP hold ends a root's call, by Linux's defaults up to 10 MB of a connection's buffers; where messages go from its
    // memory, this much has begun and waits to be taken.
    const size_t count = backend == "ucx" || backend == "verbs" ? 100'000 : 5'000'000;
    for (const Collective collective : {Collective::all_reduce, Collective::broadcast, Collective::scatter}) {
      tells_of_the_deadline(told_late(backend, collective, count, {}, milliseconds(250)), backend,
                            fmt::format("{} count={} type=float", name(collective), count), "0.25");
    }
  }
}

TEST_CASE("a call's own limit goes before the option, and what ends in time is no error") {
  const auto start = Clock::now();
  tells_of_the_deadline(told_late("shm", Collective::all_reduce, 8, {"GYRE_DEADLINE=600"}, milliseconds(100)), "shm", "all_reduce count=8",
                        "0.1");
  CHECK(Clock::now() - start < std::chrono::seconds(60));
  CHECK(first_wrong(run_ranks(2, all_configured({"GYRE_DEADLINE=1"}), [](Communicator& communicator) {
          if (communicator.rank() == 1) std::this_thread::sleep_for(milliseconds(1300));
          Sum sum(8);
          return error_of(communicator.run(sum.call(), sum.data.data(), sum.data.data(), milliseconds(0)));
        })) == "");
}

TEST_CASE("a limit given with a group of sends and receives goes before the option, whether it is begun or waited for") {
  for (const bool begun : {false, true}) {
    const Words words = run_ranks(2, all_configured({"GYRE_DEADLINE=600"}), [&](Communicator& communicator) -> std::string {
      if (communicator.rank() == 1) {
        communicator.bootstrap().wait_for_failure(std::chrono::seconds(8));
        return error_of(communicator.lives());
      }
      int32_t value = 0;
      const Transfer receive{Transfer::Kind::receive, 1, &value, 1, DataType::int32};
      if (!begun) return error_of(communicator.exchange({&receive, 1}, milliseconds(200)));
      const auto request = communicator.start({&receive, 1}, milliseconds(200));
      return request ? error_of(communicator.wait(*request)) : error_of(request);
    });
    INFO((begun ? "begun: " : "waited for: ") << words[0]);
    CHECK(contains(words[0],
                   "nothing has moved for 0.2 s; rank 0 was in call 0, exchange sends=0 receives=1, waiting to receive from rank 1"));
    CHECK(contains(words[1], "rank 0 gave up: nothing has moved for 0.2 s"));
  }
}

TEST_CASE("an operation in flight that is tested has a deadline, also behind one that has none") {
  const Words words = run_ranks(2, all_configured({}), [](Communicator& communicator) -> std::string {
    if (communicator.rank() == 1) {
      communicator.bootstrap().wait_for_failure(std::chrono::seconds(8));
      return "";
    }
    Sum first(8), second(8);
    if (const auto begun = communicator.start(first.call(), first.data.data(), first.data.data()); !begun) return error_of(begun);
    const auto request = communicator.start(second.call(), second.data.data(), second.data.data(), milliseconds(200));
    if (!request) return error_of(request);
    for (const auto given_up = Clock::now() + std::chrono::seconds(8); Clock::now() < given_up;) {
      const auto done = communicator.test(*request);
      if (!done) return error_of(done);
      if (*done) return "done";
      std::this_thread::sleep_for(milliseconds(5));
    }
    return "no deadline";
  });
  INFO(words[0]);
  CHECK(contains(words[0], "nothing has moved for 0.2 s; rank 0 was in call 0"));
}

TEST_CASE("what a rank computes while an operation is in flight is no wait") {
  CHECK(first_wrong(run_ranks(2, all_configured({}), [](Communicator& communicator) -> std::string {
          Sum sum(300'000);
          sum.fill(communicator);
          const auto request = communicator.start(sum.call(), sum.data.data(), sum.data.data(), milliseconds(500));
          if (!request) return error_of(request);
          std::this_thread::sleep_for(milliseconds(700));
          const Status status = communicator.wait(*request);
          return !status ? error_of(status) : sum.right(communicator) ? "" : "wrong sum";
        })) == "");
}

TEST_CASE("a deadline holds for all that is waited for") {
  const Words words = run_ranks(2, all_configured({}), [](Communicator& communicator) -> std::string {
    if (communicator.rank() == 1) {
      const Error* failure = communicator.bootstrap().wait_for_failure(std::chrono::seconds(8));
      Sum sum(8);
      return failure == nullptr ? "no failure" : error_of(communicator.start(sum.call(), sum.data.data(), sum.data.data()));
    }
    Sum first(8), second(8);
    if (const auto begun = communicator.start(first.call(), first.data.data(), first.data.data()); !begun) return error_of(begun);
    const auto request = communicator.start(second.call(), second.data.data(), second.data.data(), milliseconds(300));
    return request ? error_of(communicator.wait(*request)) : error_of(request);
  });
  CHECK(contains(words[0], "nothing has moved for 0.3 s; rank 0 was in call 0"));
  CHECK(contains(words[1], "rank 0 gave up: nothing has moved for 0.3 s"));
}

TEST_CASE("of what is in flight when word of a failure comes, that has succeeded whose messages had come") {
  std::promise<void> begun;
  const Words words = run_ranks(2, all_configured({"GYRE_TRANSPORT=loopback"}), [&](Communicator& communicator) -> std::string {
    Sum first(8), second(8);
    const Call broadcast{Collective::broadcast, first.data.size(), first.call().type, ReduceOp::sum, 1};
    if (communicator.rank() == 1) {
      begun.get_future().wait();
      const Status sent = communicator.run(broadcast, first.data.data(), first.data.data());
      communicator.abort("enough");
      return error_of(sent);
    }
    const auto here = communicator.start(broadcast, first.data.data(), first.data.data());
    const auto never = communicator.start(second.call(), second.data.data(), second.data.data());
    begun.set_value();
    if (!here || !never) return "not begun";
    if (communicator.bootstrap().wait_for_failure(std::chrono::seconds(20)) == nullptr) return "no failure";
    if (const Status status = communicator.wait(*here); !status) return error_of(status);
    return contains(error_of(communicator.wait(*never)), "aborted: enough") ? "" : "the other one succeeded";
  });
  CHECK(first_wrong(words) == "");
}

TEST_CASE("an abort by another thread ends a call on all ranks", "[transport]") {
  for (const std::string& backend : test::backends()) {
    const auto start = Clock::now();
    const Words words = run_ranks(3, all_configured({"GYRE_TRANSPORT=" + backend}), [&](Communicator& communicator) -> std::string {
      if (communicator.rank() == 2) {
        communicator.bootstrap().wait_for_failure(std::chrono::seconds(8));
        return error_of(communicator.wait({1}));
      }
      std::thread other;
      if (communicator.rank() == 0) {
        other = std::thread([&] {
          std::this_thread::sleep_for(milliseconds(100));
          communicator.abort("the user has seen enough");
        });
      }
      Sum sum(100'000);
      const auto request = communicator.start(sum.call(), sum.data.data(), sum.data.data());
      const std::string told = request ? error_of(communicator.wait(*request)) : error_of(request);
      if (other.joinable()) other.join();
      return told == error_of(communicator.run(sum.call(), sum.data.data(), sum.data.data())) ? told : "later calls say another thing";
    });
    INFO(backend << ": " << words[0] << " | " << words[1] << " | " << words[2]);
    CHECK(contains(words[0], "aborted: the user has seen enough"));
    CHECK(contains(words[1], "rank 0 gave up: aborted: the user has seen enough"));
    CHECK(contains(words[2], "there is no request 1"));
    CHECK(Clock::now() - start < std::chrono::seconds(8));
  }
}
