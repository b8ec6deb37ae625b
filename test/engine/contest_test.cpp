#include "engine/contest.h"

#include <array>
#include <string>

#include "test/catch.h"

using namespace gyre;
using engine::Contest;

namespace {

constexpr uint32_t period = 100;

/// Ranks that make the same calls, and see different times.
struct Contestants {
  std::array<Contest, 2> ranks;

  explicit Contestants(uint32_t calls) : ranks{Contest(calls, period), Contest(calls, period)} {}
  /// 's' or 'c': which way the next call goes; '?': the ranks differ. `straight`, `copies`: what it takes on each rank.
  char call(std::array<float, 2> straight, std::array<float, 2> copies) {
    const bool way = ranks[0].straight();
    if (ranks[1].straight() != way) return '?';
    const float saved = ranks[0].saved() + ranks[1].saved();
    for (size_t r = 0; r < ranks.size(); ++r) {
      ranks[r].begin(saved);
      ranks[r].end(way ? straight[r] : copies[r]);
    }
    return way ? 's' : 'c';
  }
  std::string calls(size_t count, std::array<float, 2> straight, std::array<float, 2> copies) {
    std::string ways;
    while (ways.size() < count) ways += call(straight, copies);
    return ways;
  }
};

}  // namespace

TEST_CASE("calls try both ways, and all ranks then go the one that takes all of them less time") {
  CHECK(Contestants(2).calls(12, {10, 10}, {20, 20}) == "ssccccssssss");
  CHECK(Contestants(2).calls(12, {20, 20}, {10, 10}) == "ssccccsssccc");
  CHECK(Contestants(1).calls(8, {20, 20}, {10, 10}) == "sccssccc");
  // One rank's gain and the other's loss.
  CHECK(Contestants(2).calls(12, {10, 30}, {15, 20}).back() == 'c');
  CHECK(Contestants(2).calls(12, {10, 30}, {25, 20}).back() == 's');
}

TEST_CASE("the least time of a way counts, not that of a program's first calls") {
  Contestants job(2);
  CHECK(job.calls(2, {900, 900}, {}) == "ss");
  CHECK(job.calls(4, {}, {20, 20}) == "cccc");
  CHECK(job.calls(2, {10, 10}, {}) == "ss");
  CHECK(job.calls(3, {10, 10}, {20, 20}) == "sss");
}

TEST_CASE("both ways are tried again after a while, and what has changed is heard") {
  Contestants job(2);
  const std::string first = job.calls(period, {10, 10}, {20, 20});
  CHECK(first == "sscccc" + std::string(period - 6, 's'));
  CHECK(job.calls(12, {20, 20}, {10, 10}) == "ssccccsssccc");
}

TEST_CASE("where a rank could not read, copies carry the calls until both ways are tried again") {
  Contestants job(2);
  CHECK(job.call({10, 10}, {20, 20}) == 's');
  for (Contest& rank : job.ranks) rank.refuse();
  CHECK(job.calls(period - 1, {10, 10}, {20, 20}) == std::string(period - 1, 'c'));
  CHECK(job.calls(12, {10, 10}, {20, 20}) == "ssccccsscsss");
}
