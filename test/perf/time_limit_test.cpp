#include "perf/time_limit.h"

#include <fmt/format.h>

#include "test/catch.h"
#include "test/ranks.h"

using namespace gyre;
using namespace gyre::perf;
using gyre::test::all_configured;
using gyre::test::run_ranks;
using gyre::test::Words;

namespace {

const auto over_loopback = all_configured({"GYRE_TRANSPORT=loopback"});

std::string text(const Result<bool>& answer) { return !answer ? answer.error().what : *answer ? "on" : "over"; }
std::string text(const Result<uint64_t>& answer) { return answer ? std::to_string(*answer) : answer.error().what; }

}  // namespace

TEST_CASE("without a limit everything is done, and nobody is asked") {
  // One rank alone would wait for the other, if it were.
  const Words words = run_ranks(2, over_loopback, [](engine::Communicator& communicator) -> std::string {
    if (communicator.rank() != 0) return "";
    TimeLimit none;
    return fmt::format("{} {} {} {}", text(none.goes_on(communicator.bootstrap())), text(none.next(communicator.bootstrap(), 1000, 0, 0)),
                       text(none.next(communicator.bootstrap(), 0, 1000, 1)), none.reached());
  });
  CHECK(words[0] == "on 1000 0 false");
}

TEST_CASE("a limit is reached on all ranks when it is reached on rank 0") {
  // The clocks of the ranks say the opposite of each other.
  for (const bool late : {false, true}) {
    const Words words = run_ranks(3, over_loopback, [late](engine::Communicator& communicator) {
      TimeLimit limit((communicator.rank() == 0) == late ? 1e-9 : 1e6);
      const std::string first = text(limit.goes_on(communicator.bootstrap()));
      return fmt::format("{} {} {}", first, limit.reached(), text(limit.next(communicator.bootstrap(), 1000, 10, 1)));
    });
    for (const std::string& word : words) CHECK(word == (late ? "over true 0" : "on false 2"));
  }
}

TEST_CASE("iterations between two meetings are as many as fit, and at most twice those before") {
  const Words words = run_ranks(2, over_loopback, [](engine::Communicator& communicator) {
    TimeLimit limit(1e6);
    transport::Bootstrap& bootstrap = communicator.bootstrap();
    const double each = communicator.rank() == 0 ? 1e-3 : 1e3;  // rank 0's counts
    return fmt::format("{} {} {} {} {}", text(limit.next(bootstrap, 1000, 0, 0)), text(limit.next(bootstrap, 1000, 1, each)),
                       text(limit.next(bootstrap, 1000, 200, 200 * each)), text(limit.next(bootstrap, 7, 200, 200 * each)),
                       text(limit.next(bootstrap, 1000, 3, 3000 * each)));
  });
  for (const std::string& word : words) CHECK(word == "1 2 250 7 1");
}
