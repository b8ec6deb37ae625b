// What the executor makes of work that waits.
#include "engine/executor.h"

#include "test/catch.h"
#include "test/ranks.h"
#include "test/text.h"

using namespace gyre;
using namespace gyre::engine;
using gyre::test::all_configured;
using gyre::test::error_of;
using gyre::test::run_ranks;

namespace {

/// Waits for rank 1, whose message comes after it was looked for and before anybody sees that the rank has left.
class Late final : public Work {
 public:
  explicit Late(bool comes) : comes_(comes) {}
  Moved move() override { return {here_, here_}; }
  Rank stranger() const override { return -1; }
  std::vector<Rank> awaited() const override {
    here_ = comes_;
    return {1};
  }
  std::string where() const override { return "for rank 1"; }
  Description description() const override { return {0, 1, "a call"}; }
  std::vector<transport::Pair> pairs() const override { return {}; }

 private:
  bool comes_;
  mutable bool here_ = false;
};

std::string told(bool comes) {
  return run_ranks(2, all_configured({}), [&](Communicator& communicator) {
    if (communicator.rank() == 1) return std::string();
    const std::vector<std::string> links{"", "shm"};
    Waiter waiter("auto", {});
    Executor executor(communicator.bootstrap(), {}, links, waiter);
    Late work(comes);
    return error_of(executor.run(work));
  })[0];
}

}  // namespace

TEST_CASE("a message that came before its sender left is not missed") { CHECK(told(true) == ""); }

TEST_CASE("a rank that has left is not waited for") {
  CHECK(told(false) == "rank 1 has left; rank 0 was in call 0, a call, waiting for rank 1, by shm");
}
