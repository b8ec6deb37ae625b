#include "topo/host_order.h"

#include <algorithm>
#include <random>
#include <set>

#include "test/catch.h"

using namespace gyre;
using namespace gyre::topo;

namespace {

using HostOrder = std::vector<int>;

bool avoids(const HostOrder& order, const schedule::RankPairs& apart) {
  const std::set<std::pair<Rank, Rank>> pairs(apart.begin(), apart.end());
  for (size_t i = 0; i < order.size(); ++i) {
    if (pairs.contains(std::minmax(order[i], order[(i + 1) % order.size()]))) return false;
  }
  return true;
}

/// Whether any order at all does.
bool avoidable(int hosts, const schedule::RankPairs& apart) {
  HostOrder order(static_cast<size_t>(hosts));
  for (int host = 0; host < hosts; ++host) order[static_cast<size_t>(host)] = host;
  do {
    if (avoids(order, apart)) return true;
  } while (std::next_permutation(order.begin() + 1, order.end()));
  return false;
}

}  // namespace

TEST_CASE("hosts follow each other by number where they can") {
  CHECK(host_order(0, {}).empty());
  CHECK(host_order(4, {}) == HostOrder{0, 1, 2, 3});
  CHECK(host_order(2, {{0, 1}}) == HostOrder{0, 1});
  CHECK(host_order(3, {{0, 1}}) == HostOrder{0, 1, 2});  // each comes after each of the others
}

TEST_CASE("hosts that are apart are no neighbours where there is such an order, which begins with the first") {
  std::mt19937_64 random(7);
  int moved = 0;
  for (int i = 0; i < 300; ++i) {
    const int hosts = 1 + static_cast<int>(random() % 7);
    schedule::RankPairs apart;
    for (Rank b = 1; b < hosts; ++b) {
      for (Rank a = 0; a < b; ++a) {
        if (random() % 3 == 0) apart.emplace_back(a, b);
      }
    }
    const HostOrder order = host_order(hosts, apart);
    INFO("case " << i);
    CHECK(order[0] == 0);
    CHECK(std::set<int>(order.begin(), order.end()).size() == static_cast<size_t>(hosts));
    CHECK(avoids(order, apart) == avoidable(hosts, apart));
    moved += std::ranges::is_sorted(order) ? 0 : 1;
  }
  CHECK(moved > 50);
}

TEST_CASE("many hosts have an order soon, also where one of them reaches but two") {
  constexpr int hosts = 4096;
  schedule::RankPairs apart;
  for (Rank other = 0; other < hosts - 1; ++other) {
    if (other != 17 && other != 1000) apart.emplace_back(other, hosts - 1);
  }
  const HostOrder order = host_order(hosts, apart);
  CHECK(order.size() == hosts);
  CHECK(avoids(order, apart));
}
