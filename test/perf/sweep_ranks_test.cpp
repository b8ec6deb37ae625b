#include "perf/sweep_ranks.h"

#include <fmt/format.h>

#include "test/catch.h"
#include "test/ranks.h"

using namespace gyre;
using namespace gyre::perf;
using gyre::test::configured;

TEST_CASE("what is wrong in another group is wrong on every rank, whatever its own group found") {
  constexpr int ranks = 4;
  const Split odd_and_even{Split::Operation::modulo, 2, "NCCL_TESTS_SPLIT=MOD 2"};
  const transport::Door door = *transport::open_door();
  std::vector<std::string> words(ranks);
  std::vector<std::thread> threads;
  for (Rank rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] {
      const auto joined = SweepRanks::join(door.rendezvous(rank, ranks), configured({"GYRE_TRANSPORT=loopback"}), 1, odd_and_even);
      std::string& said = words[static_cast<size_t>(rank)];
      if (!joined) return void(said = joined.error().what);
      Totals mine;
      mine.wrong = rank % 2 == 1 ? 3 : 0;  // a group's ranks have the same sum
      const auto lines = joined->totals_of_groups(mine);
      said = lines ? fmt::format("{} wrong\n{}", mine.wrong, *lines) : lines.error().what;
      if (const Status left = joined->leave(); !left) said += left.error().what;
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::string& said : words) {
    CHECK(said == "3 wrong\ngroup 0: avg bus bandwidth 0.0000, 0 wrong\ngroup 1: avg bus bandwidth 0.0000, 3 wrong\n");
  }
}
