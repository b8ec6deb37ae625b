#include "engine/copy_trial.h"

#include <algorithm>
#include <thread>

#include "test/catch.h"

using namespace gyre;
using engine::CopyTrial;
using std::chrono::microseconds;
using std::chrono::seconds;
using transport::Board;

namespace {

using FoundByRank = std::vector<std::optional<CopyTrial::Times>>;

struct Trials {
  std::vector<std::unique_ptr<Board>> boards;
  std::vector<CopyTrial> trials;

  explicit Trials(int ranks) {
    for (Rank rank = 0; rank < ranks; ++rank) {
      boards.push_back(*Board::create(rank, ranks));
      trials.emplace_back(rank);
    }
    for (Rank rank = 0; rank < ranks; ++rank) {
      Board& board = *boards[static_cast<size_t>(rank)];
      for (Rank peer = 0; peer < ranks; ++peer) {
        if (peer != rank) REQUIRE(board.open(peer, boards[static_cast<size_t>(peer)]->address()));
      }
    }
  }
  FoundByRank run(size_t from, size_t to, microseconds patience) {
    FoundByRank found(boards.size());
    std::vector<std::thread> threads;
    for (size_t rank = from; rank < to; ++rank) {
      threads.emplace_back([&, rank] { found[rank] = trials[rank].run(*boards[rank], patience); });
    }
    for (std::thread& thread : threads) thread.join();
    return found;
  }
  bool all_learn() {
    const FoundByRank found = run(0, boards.size(), seconds(20));
    return std::all_of(found.begin(), found.end(), [](const auto& one) { return one.has_value(); });
  }
};

}  // namespace

TEST_CASE("every rank learns by which way its bytes reach the next one") {
  for (const int ranks : {2, 3, 4, 7}) {
    Trials all(ranks);
    CHECK(all.all_learn());
  }
}

TEST_CASE("all ranks' times decide, and what is as long goes past the caches") {
  using Times = CopyTrial::Times;
  CHECK(CopyTrial::favours_caches(std::vector<Times>{{1, 1.5}, {1, 1.5}}));
  CHECK_FALSE(CopyTrial::favours_caches(std::vector<Times>{{1, 1.05}, {1, 1.05}}));
  CHECK(CopyTrial::favours_caches(std::vector<Times>{{1.2, 1.2}, {1, 1.6}}));  // the first was held up
  CHECK_FALSE(CopyTrial::favours_caches(std::vector<Times>{{4, 3}, {1, 1.5}}));
}

TEST_CASE("where a rank stays away nothing is learnt, in time") {
  for (const int ranks : {2, 3}) {
    for (size_t there = 0; there < static_cast<size_t>(ranks); ++there) {
      Trials all(ranks);
      const auto begin = std::chrono::steady_clock::now();
      CHECK_FALSE(all.run(there, there + 1, microseconds(500))[there].has_value());
      CHECK(std::chrono::steady_clock::now() - begin < seconds(10));
    }
  }
  Trials alone(1);
  CHECK_FALSE(alone.run(0, 1, seconds(20))[0].has_value());
}
