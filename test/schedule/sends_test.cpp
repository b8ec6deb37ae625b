#include "schedule/sends.h"

#include "schedule/fuse.h"
#include "test/catch.h"
#include "topo/algorithms.h"

using namespace gyre;
using namespace gyre::schedule;

TEST_CASE("connections that a rank sends on are numbered without gaps, in the order of channels and peers", "[schedule]") {
  for (const char* family : {"ring", "double_tree", "two_shot", "halving_doubling"}) {
    const Schedule made = fuse(*topo::make(family, {Collective::all_reduce, 5, 1, 0, {}}));
    uint32_t most = 0;
    for (Rank rank = 0; rank < made.ranks; ++rank) {
      const Sends all = sends(made, rank);
      REQUIRE(all.place.size() == size_t{made.channels} * 5);
      uint32_t next = 0;
      for (const uint32_t place : all.place) CHECK((place == Sends::none || place == next++));
      CHECK(next == all.count);
      CHECK(all.place[static_cast<size_t>(rank)] == Sends::none);
      most = std::max(most, all.count);
    }
    CHECK(most == most_sends(made));
    CHECK((most == 1) == (made.family == "ring"));
  }
}

TEST_CASE("peers that do not count have no place among those that a rank sends to", "[schedule]") {
  const Schedule made = *topo::make("two_shot", {Collective::all_reduce, 4, 1, 0, {}});
  const Sends some = sends(made, 1, {true, true, false, true});
  CHECK(some.count == 2);
  CHECK(some.place == std::vector<uint32_t>{0, Sends::none, Sends::none, 1});
}

TEST_CASE("who is sent to receives on as many connections", "[schedule]") {
  const Schedule made = *topo::make("naive", {Collective::gather, 4, 1, 2, {}});
  CHECK(receives(made, 2).count == 3);
  CHECK(receives(made, 2).place == std::vector<uint32_t>{0, 1, Sends::none, 2});
  CHECK(receives(made, 0).count == 0);
  CHECK((most_receives(made) == 3 && most_sends(made) == 1));
}
