#include "perf/net_agree.h"

#include <array>
#include <thread>

#include "test/becomes.h"
#include "test/catch.h"
#include "test/must.h"
#include "transport/door.h"

using namespace gyre;
using namespace gyre::perf;

namespace {

// What two ranks have agreed on, when rank 1 has given up for it and rank 0 knows that.
struct Ended {
  std::unique_ptr<transport::Bootstrap> job;
  Status mine, agreed;
};

std::array<Ended, 2> ended(const Status& first, const Status& second) {
  const transport::Door door = *transport::open_door();
  std::array<Ended, 2> ranks;
  const auto end = [&](Rank rank, const Status& mine) {
    Ended& ended = ranks[static_cast<size_t>(rank)];
    ended.job = test::must(transport::Bootstrap::join(door.rendezvous(rank, 2)));
    ended.mine = mine;
    ended.agreed = agree(*ended.job, mine);
    if (rank == 1) ended.job->fail(ended.agreed.error());
  };
  std::thread other([&] { end(1, second); });
  end(0, first);
  other.join();
  REQUIRE(test::becomes([&] { return ranks[0].job->failure() != nullptr; }));
  return ranks;
}

}  // namespace

TEST_CASE("what no rank can start with is said by the first, also after the other has given up for it") {
  const auto ranks = ended(Error{Code::invalid_argument, "no such plugin"}, Error{Code::invalid_argument, "no such plugin"});
  CHECK(ranks[0].agreed.error().what == "no such plugin");
  CHECK(ranks[1].agreed.error().what == "rank 0: no such plugin");
  CHECK(says(*ranks[0].job, ranks[0].mine, ranks[0].agreed.error()));
  CHECK_FALSE(says(*ranks[1].job, ranks[1].mine, ranks[1].agreed.error()));
}

TEST_CASE("what one rank can't start with is said by that rank alone") {
  const auto ranks = ended({}, Error{Code::invalid_argument, "no such plugin"});
  CHECK_FALSE(says(*ranks[0].job, ranks[0].mine, ranks[0].agreed.error()));
  CHECK(says(*ranks[1].job, ranks[1].mine, ranks[1].agreed.error()));
}

TEST_CASE("what a rank can't start with is said where the other is gone before they agree") {
  const transport::Door door = *transport::open_door();
  std::thread other([&] { test::must(transport::Bootstrap::join(door.rendezvous(1, 2)))->fail({Code::system, "a plugin ended it"}); });
  const auto job = test::must(transport::Bootstrap::join(door.rendezvous(0, 2)));
  other.join();
  const Status mine = Error{Code::invalid_argument, "no such plugin"};
  const Status agreed = agree(*job, mine);
  CHECK(agreed.error().what == "no such plugin");
  CHECK(says(*job, mine, agreed.error()));
}
