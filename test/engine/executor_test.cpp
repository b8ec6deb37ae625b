// What the executor makes of work that waits.
#include "engine/executor.h"

#include <algorithm>
#include <chrono>
#include <future>
#include <optional>
#include <thread>
#include <utility>

#include "test/catch.h"
#include "test/ranks.h"
#include "test/text.h"

using namespace gyre;
using namespace gyre::engine;
using gyre::test::all_configured;
using gyre::test::error_of;
using gyre::test::run_ranks;

namespace {

/// Waits for rank 1, whose message comes so long after it is seen that it is waited for; never: -1.
class Late final : public Work {
 public:
  explicit Late(std::chrono::milliseconds after) : after_(after) {}
  Moved move() override {
    const bool here = after_.count() >= 0 && asked_ && std::chrono::steady_clock::now() - *asked_ >= after_;
    return {here, here};
  }
  Rank stranger() const override { return -1; }
  std::vector<Rank> awaited() const override {
    if (!asked_) asked_ = std::chrono::steady_clock::now();
    return {1};
  }
  std::string where() const override { return "for rank 1"; }
  Description description() const override { return {0, 1, "a call"}; }
  std::vector<transport::Pair> pairs() const override { return {}; }

 private:
  std::chrono::milliseconds after_;
  mutable std::optional<std::chrono::steady_clock::time_point> asked_;
};

std::string told(std::chrono::milliseconds after) {
  return run_ranks(2, all_configured({}), [&](Communicator& communicator) {
    if (communicator.rank() == 1) return std::string();
    const std::vector<std::string> links{"", "shm"};
    Waiter waiter("auto", {});
    Executor executor(communicator.bootstrap(), {}, links, waiter);
    Late work(after);
    return error_of(executor.run(work));
  })[0];
}

/// Its message comes as its sender leaves, which is while this rank tells rank 0 what it waits for.
class JustLeft final : public Work {
 public:
  JustLeft(const transport::Bootstrap& bootstrap, std::promise<void>& told) : bootstrap_(bootstrap), told_(told) {}
  Moved move() override { return {left_, left_}; }
  Rank stranger() const override { return -1; }
  std::vector<Rank> awaited() const override { return {1}; }
  std::string where() const override { return "for rank 1"; }
  Description description() const override {
    if (!std::exchange(left_, true)) told_.set_value();
    while (!bootstrap_.left(1)) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return {0, 1, "a call"};
  }
  std::vector<transport::Pair> pairs() const override { return {}; }

 private:
  const transport::Bootstrap& bootstrap_;
  std::promise<void>& told_;
  mutable bool left_ = false;
};

/// Whose last send completes with the worker's next progress. Word of a failure comes while it is sent, or later.
class LastSend final : public Work {
 public:
  LastSend(transport::Bootstrap& bootstrap, const bool& completed, bool fails)
      : bootstrap_(bootstrap), completed_(completed), fails_(fails) {}
  Moved move() override {
    if (!std::exchange(fails_, false)) return {completed_, completed_};
    bootstrap_.fail({Code::remote, "rank 1 is gone"});
    return {true, false};
  }
  Rank stranger() const override { return -1; }
  std::vector<Rank> awaited() const override { return completed_ ? std::vector<Rank>{} : std::vector<Rank>{1}; }
  std::string where() const override { return completed_ ? "for nobody" : "for its last sends to rank 1 to complete"; }
  Description description() const override { return {0, 1, "a call"}; }
  std::vector<transport::Pair> pairs() const override { return {}; }

 private:
  transport::Bootstrap& bootstrap_;
  const bool& completed_;
  bool fails_;
};

class FakeNetwork : public transport::Worker {
 public:
  Result<std::unique_ptr<transport::Listener>> listen() override { return none(); }
  Result<std::unique_ptr<transport::Endpoint>> connect(std::string_view /*address*/, std::string_view /*hello*/) override { return none(); }
  Result<std::unique_ptr<transport::Memory>> register_memory(std::span<std::byte> /*region*/, transport::MemoryKind /*kind*/) override {
    return none();
  }

  bool completed = false;

 private:
  static Error none() { return {Code::internal, "not here"}; }
};

/// Brings word of a failure as it completes a send.
class BadNews final : public FakeNetwork {
 public:
  explicit BadNews(transport::Bootstrap& bootstrap) : bootstrap_(bootstrap) {}
  unsigned progress() override {
    if (!completed) bootstrap_.fail({Code::remote, "rank 1 is gone"});
    completed = true;
    return 1;
  }

 private:
  transport::Bootstrap& bootstrap_;
};

/// What it waits for comes when it is about to sleep, and is taken before it does.
class TakenInTime final : public FakeNetwork {
 public:
  bool arm(std::vector<pollfd>& /*awaited*/) override { return armed_ = true; }
  unsigned progress() override { return std::exchange(completed, armed_) == armed_ ? 0 : 1; }

 private:
  bool armed_ = false;
};

class Awaited final : public Work {
 public:
  explicit Awaited(const bool& completed) : completed_(completed) {}
  Moved move() override { return {completed_, completed_}; }
  Rank stranger() const override { return -1; }
  std::vector<Rank> awaited() const override { return {}; }
  std::string where() const override { return "for the network"; }
  Description description() const override { return {0, 0, "a call"}; }
  std::vector<transport::Pair> pairs() const override { return {}; }

 private:
  const bool& completed_;
};

}  // namespace

TEST_CASE("a call that completes as word of a failure comes is complete") {
  const bool in_steps = GENERATE(false, true);
  const bool while_sent = GENERATE(false, true);
  const auto words = run_ranks(1, all_configured({}), [&](Communicator& communicator) {
    BadNews worker(communicator.bootstrap());
    Waiter waiter("auto", {});
    const std::vector<std::string> links{"", "shm"};
    Executor executor(communicator.bootstrap(), {&worker}, links, waiter);
    LastSend work(communicator.bootstrap(), worker.completed, while_sent);
    if (!in_steps) return error_of(executor.run(work));
    executor.begin();
    auto moved = executor.step(work);
    while (moved && !moved->done) moved = executor.step(work);
    return error_of(moved);
  });
  CHECK(words[0] == "");
}

TEST_CASE("who is about to sleep looks at what its network has taken meanwhile") {
  const auto words = run_ranks(1, all_configured({}), [&](Communicator& communicator) -> std::string {
    auto least = std::chrono::steady_clock::duration::max();
    for (int i = 0; i < 20; ++i) {
      TakenInTime network;
      const auto doorbell = transport::Doorbell::create(0, 1, 0, true);
      if (!doorbell) return doorbell.error().what;
      Waiter waiter("sleep", {false, false, {&network}, doorbell->get()});
      const std::vector<std::string> links{""};
      Executor executor(communicator.bootstrap(), {&network}, links, waiter);
      Awaited work(network.completed);
      const auto begin = std::chrono::steady_clock::now();
      if (const Status status = executor.run(work); !status) return status.error().what;
      least = std::min(least, std::chrono::steady_clock::now() - begin);
    }
    return least < std::chrono::milliseconds(5) ? "" : "it slept";  // ten
  });
  CHECK(words[0] == "");
}

TEST_CASE("what a rank sent before it left is not missed, be it on its way for a while when word of that is here") {
  for (const int after : {0, 1, 500}) CHECK(told(std::chrono::milliseconds(after)) == "");
}

TEST_CASE("a rank that leaves while it is being told of is looked for once more") {
  std::promise<void> told;
  const auto words = run_ranks(2, all_configured({}), [&](Communicator& communicator) {
    if (communicator.rank() == 1) return told.get_future().wait(), std::string();
    const std::vector<std::string> links{"", "shm"};
    Waiter waiter("auto", {});
    Executor executor(communicator.bootstrap(), {}, links, waiter);
    JustLeft work(communicator.bootstrap(), told);
    return error_of(executor.run(work));
  });
  CHECK(words[0] == "");
}

TEST_CASE("a rank that has left is not waited for") {
  CHECK(told(std::chrono::milliseconds(-1)) == "rank 1 has left; rank 0 was in call 0, a call, waiting for rank 1, by shm");
}
