#include "schedule/turns.h"

#include <fmt/format.h>

#include <map>
#include <random>
#include <tuple>

#include "schedule/fuse.h"
#include "test/catch.h"
#include "test/schedule/machines.h"
#include "test/schedule/schedules.h"

using namespace gyre;
using namespace gyre::schedule;

namespace {

/// Ranks that run their turns one by one, over so many rounds, each when it is picked and can; empty: all came to the end.
std::string played(const Schedule& schedule, uint32_t credits, uint32_t slices, unsigned seed) {
  constexpr size_t rounds = 3;
  std::vector<std::vector<Turn>> all;
  for (Rank r = 0; r < schedule.ranks; ++r) all.push_back(*turns(schedule, r, credits, slices));
  std::map<std::tuple<uint32_t, Rank, Rank>, uint32_t> under_way;
  std::vector<size_t> at(all.size());
  std::mt19937 random(seed);
  for (size_t idle = 0; idle < 50 * all.size();) {
    const Rank rank = static_cast<Rank>(random() % all.size());
    const auto& own = all[static_cast<size_t>(rank)];
    size_t& place = at[static_cast<size_t>(rank)];
    ++idle;
    if (place == rounds * own.size()) continue;
    const Turn& turn = own[place % own.size()];
    const Step& step = schedule.program(rank, turn.channel, turn.strand).steps[turn.cursor.step];
    bool can = true;
    for (const Rank peer : schedule.peers(step.from)) can = can && under_way[{turn.channel, peer, rank}] > 0;
    for (const Rank peer : schedule.peers(step.to)) can = can && under_way[{turn.channel, rank, peer}] < credits;
    if (!can) continue;
    for (const Rank peer : schedule.peers(step.from)) --under_way[{turn.channel, peer, rank}];
    for (const Rank peer : schedule.peers(step.to)) ++under_way[{turn.channel, rank, peer}];
    ++place;
    idle = 0;
  }
  for (size_t r = 0; r < all.size(); ++r) {
    if (at[r] != rounds * all[r].size()) return fmt::format("rank {} is stuck at turn {} of {}", r, at[r], rounds * all[r].size());
  }
  return {};
}

/// As they run: fused.
template <class F>
void each_fused(F&& f) {
  for (const int ranks : {1, 2, 3, 6, 8}) {
    for (const uint32_t channels : {1U, 2U}) test::each_schedule(ranks, channels, [&](Schedule schedule) { f(fuse(std::move(schedule))); });
  }
}

}  // namespace

TEST_CASE("ranks that keep to their turns never get stuck, of any algorithm") {
  each_fused([](const Schedule& schedule) {
    // As many as are certain of 2, 4, 8 and 16 slots, whose credits come back in batches, and the slices that go with them.
    for (const auto& [credits, slices] : {std::pair{2U, 1U}, {3U, 2U}, {5U, 4U}, {9U, 8U}})
      CHECK(played(schedule, credits, slices, 7) == "");
  });
}

TEST_CASE("a rank's turns are all its steps, and those of a program in their order") {
  each_fused([](const Schedule& schedule) {
    constexpr uint32_t slices = 2;
    const Rank rank = schedule.ranks - 1;
    const auto own = *turns(schedule, rank, 4, slices);
    std::map<std::pair<uint32_t, uint32_t>, Cursor> next;
    for (const Turn& turn : own) {
      Cursor& expected = next[{turn.channel, turn.strand}];
      REQUIRE(turn.cursor.step == expected.step);
      REQUIRE(turn.cursor.slice == expected.slice);
      expected.next(slices);
    }
    for (uint32_t channel = 0; channel < schedule.channels; ++channel) {
      for (uint32_t strand = 0; strand < schedule.strands; ++strand)
        CHECK(next[{channel, strand}].step == schedule.program(rank, channel, strand).steps.size());
    }
  });
}

TEST_CASE("where a message never comes there are no turns, and the error says whose program is stuck") {
  Schedule schedule = test::made("ring", 3);
  schedule.programs[0].steps.clear();
  const auto stuck = turns(schedule, 1, 2, 1);
  REQUIRE_FALSE(stuck);
  CHECK(stuck.error().what.find("gets stuck") != std::string::npos);
}
