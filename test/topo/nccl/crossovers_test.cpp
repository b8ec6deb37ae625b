#include "topo/nccl/crossovers.h"

#include "test/catch.h"

using namespace gyre;
using namespace gyre::topo::nccl;

namespace {

constexpr Entry tree_ll{Algorithm::tree, Protocol::ll}, ring_ll{Algorithm::ring, Protocol::ll};
constexpr Entry ring_ll128{Algorithm::ring, Protocol::ll128}, ring_simple{Algorithm::ring, Protocol::simple};

/// By LL 1 + bytes, by Simple 1000 + bytes/2, by LL128 as Simple and so never the first; by others nothing.
std::optional<double> two_lines(const Entry& entry, uint64_t bytes) {
  const auto size = static_cast<double>(bytes);
  if (entry == ring_ll) return 1 + size;
  if (entry == ring_ll128 || entry == ring_simple) return 1000 + size / 2;
  return std::nullopt;
}

}  // namespace

TEST_CASE("the best of a size is the one with the least time, of equals NCCL's first") {
  CHECK(best(two_lines, 1) == ring_ll);
  CHECK(best(two_lines, 1998) == ring_ll);  // 1999 both
  CHECK(best(two_lines, 1999) == ring_ll128);
  CHECK(!best([](const Entry&, uint64_t) { return std::optional<double>(); }, 8));
}

TEST_CASE("crossovers are found to the byte") {
  const auto found = changes(two_lines);
  REQUIRE(found.size() == 2);
  CHECK(found[0].from == 1);
  CHECK(found[0].best == ring_ll);
  CHECK(found[1].from == 1999);
  CHECK(found[1].best == ring_ll128);
  CHECK(crossover(two_lines, ring_ll, ring_simple) == 1999);
  CHECK(!crossover(two_lines, ring_simple, ring_ll));
  CHECK(!crossover(two_lines, ring_ll128, ring_simple));
  CHECK(!crossover(two_lines, tree_ll, ring_ll));
  CHECK(crossover(two_lines, ring_ll, ring_simple, {5000, 9000}) == 5000);
  CHECK(changes(two_lines, {3, 1999}).size() == 2);
  CHECK(changes(two_lines, {3, 1998}).size() == 1);
  CHECK(changes([](const Entry&, uint64_t) { return std::optional<double>(); }).empty());
}

TEST_CASE("a rule that changes with a power of two is seen there, and a crossover is the last") {
  // The tree is better but for sizes from 4096 on, up to where 8192 begins.
  const Seconds with_a_gap = [](const Entry& entry, uint64_t bytes) -> std::optional<double> {
    if (entry == tree_ll) return bytes >= 4096 && bytes < 8192 ? 3 : 1;
    if (entry == ring_ll) return bytes >= 100'000 ? 0.5 : 2;
    return std::nullopt;
  };
  std::vector<uint64_t> from;
  for (const Change& step : changes(with_a_gap)) from.push_back(step.from);
  CHECK(from == std::vector<uint64_t>{1, 4096, 8192, 100'000});
  CHECK(crossover(with_a_gap, tree_ll, ring_ll) == 100'000);
}
