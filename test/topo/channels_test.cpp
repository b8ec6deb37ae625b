// Channels of machines that are not here, alone and as a job's.
#include "topo/channels.h"

#include <algorithm>
#include <ctime>
#include <map>
#include <random>
#include <set>

#include "test/catch.h"
#include "test/slow_builds.h"
#include "test/topo/links.h"

using namespace gyre;
using namespace gyre::topo;
using namespace gyre::test;

namespace {

/// That each GPU is passed once, and each NVLink used once each way by what is alone; empty: so it is.
std::string wrong(const NodeLinks& links, const std::vector<Channel>& channels) {
  std::map<std::pair<int, int>, int> direct;
  std::map<int, int> out, in;
  for (const Channel& channel : channels) {
    if (std::set<int>(channel.order.begin(), channel.order.end()).size() != static_cast<size_t>(links.gpus)) return "not each GPU";
    if (channel.order.size() != static_cast<size_t>(links.gpus)) return "a GPU twice";
    for (size_t i = 0; channel.alone && i + (channel.in < 0 ? 0 : 1) < channel.order.size(); ++i) {
      const int from = channel.order[i], to = channel.order[(i + 1) % channel.order.size()];
      if (++direct[{from, to}] > links.direct[links.at(from, to)]) ++out[from], ++in[to];
    }
  }
  for (int gpu = 0; gpu < links.gpus; ++gpu) {
    if (std::max(out[gpu], in[gpu]) > links.switched[static_cast<size_t>(gpu)]) return "NVLinks of GPU " + std::to_string(gpu) + " twice";
  }
  return {};
}

size_t alone(const std::vector<Channel>& channels) { return static_cast<size_t>(std::ranges::count_if(channels, &Channel::alone)); }

double seconds_of_processor() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

}  // namespace

TEST_CASE("a mesh of NVLinks, six at each GPU, has six rings") {
  const NodeLinks links = mesh();
  const auto rings = rings_inside(links);
  CHECK(wrong(links, rings) == "");
  CHECK(rings.size() == 6);
  CHECK(alone(rings) == 6);
}

TEST_CASE("GPUs at a switch have as many rings as one of them has links, up to the most") {
  for (const int count : {1, 12, 18, 40}) {
    NodeLinks links = switched(8, count);
    const auto rings = rings_inside(links);
    CHECK(wrong(links, rings) == "");
    CHECK(rings.size() == static_cast<size_t>(std::min(count, most_channels)));
    links.switched[3] = 1;
    CHECK(rings_inside(links).size() == 1);
  }
  CHECK(rings_inside(switched(72, 18)).size() == 18);
}

TEST_CASE("without NVLinks there is one ring, which crosses between sockets and switches as little as it can") {
  const NodeLinks links = sockets(2, 2, 2);
  const auto rings = rings_inside(links);
  CHECK(wrong(links, rings) == "");
  REQUIRE(rings.size() == 1);
  CHECK_FALSE(rings[0].alone);
  std::map<Distance, int> hops;
  for (size_t i = 0; i < 8; ++i) ++hops[links.distance[links.at(rings[0].order[i], rings[0].order[(i + 1) % 8])]];
  CHECK(hops[Distance::one_switch] == 4);
  CHECK(hops[Distance::switches] == 2);
  CHECK(hops[Distance::system] == 2);
}

TEST_CASE("bridges between pairs are in the ring, and carry none alone") {
  NodeLinks links = sockets(2, 1, 4);
  for (const auto& [a, b] : {std::pair{0, 5}, std::pair{2, 3}}) links.direct[links.at(a, b)] = links.direct[links.at(b, a)] = 4;
  const auto rings = rings_inside(links);
  REQUIRE(rings.size() == 1);
  std::set<std::pair<int, int>> hops;
  for (size_t i = 0; i < 8; ++i) hops.insert(std::minmax(rings[0].order[i], rings[0].order[(i + 1) % 8]));
  CHECK(hops.contains({0, 5}));
  CHECK(hops.contains({2, 3}));
}

TEST_CASE("two GPUs have a ring for each NVLink, one GPU one ring, no GPU none") {
  NodeLinks two = sockets(1, 1, 2);
  two.direct = {0, 4, 4, 0};
  CHECK(rings_inside(two).size() == 4);
  const auto one = rings_inside(sockets(1, 1, 1));
  REQUIRE(one.size() == 1);
  CHECK(one[0].order == std::vector{0});
  CHECK(rings_inside(NodeLinks()).empty());
}

TEST_CASE("paths through a machine begin and end near their rails") {
  NodeLinks links = mesh();
  links.rails = {{0, 0, {0, 1}}, {1, 0, {2, 3}}, {2, 0, {4, 5}}, {3, 0, {6, 7}}};
  const std::vector<Passage> through{{0, 0}, {1, 1}, {2, 2}, {3, 3}};
  const auto paths = paths_through(links, through);
  CHECK(wrong(links, paths) == "");
  CHECK(alone(paths) == 4);
  for (size_t i = 0; i < 4; ++i) {
    const std::vector<int>& near = links.rails[i].near;
    CHECK(std::ranges::find(near, paths[i].order.front()) != near.end());
    CHECK(std::ranges::find(near, paths[i].order.back()) != near.end());
  }
  NodeLinks few = switched(4, 1);
  few.rails = {{0, 0, {0, 1}}, {1, 0, {2, 3}}};
  const auto shared = paths_through(few, std::vector<Passage>{{0, 0}, {1, 1}});
  CHECK(wrong(few, shared) == "");
  CHECK(alone(shared) == 1);  // a GPU's only link to the switch
}

TEST_CASE("a GPU that both rails are near to is first; any may be last") {
  NodeLinks links = sockets(1, 1, 3);
  links.rails = {{0, 0, {1}}};
  const auto paths = paths_through(links, std::vector<Passage>{{0, 0}});
  CHECK(wrong(links, paths) == "");
  CHECK(paths[0].order.front() == 1);
}

TEST_CASE("what can't reach each other is not side by side where there is another order") {
  NodeLinks links = sockets(1, 1, 5);
  links.missing.assign(25, false);
  for (const auto& [a, b] : {std::pair{0, 1}, std::pair{1, 2}, std::pair{3, 4}})
    links.missing[links.at(a, b)] = links.missing[links.at(b, a)] = true;
  const auto rings = rings_inside(links);
  REQUIRE(rings.size() == 1);
  for (size_t i = 0; i < 5; ++i) CHECK(links.reaches(rings[0].order[i], rings[0].order[(i + 1) % 5]));
}

TEST_CASE("what can't reach each other is not side by side over switches either") {
  NodeLinks links = test::switched(4, 2);
  links.missing.assign(16, false);
  links.missing[links.at(0, 1)] = links.missing[links.at(1, 0)] = true;
  const auto rings = rings_inside(links);
  REQUIRE(!rings.empty());
  for (const Channel& ring : rings) {
    CHECK(ring.alone);
    for (size_t i = 0; i < 4; ++i) CHECK(links.reaches(ring.order[i], ring.order[(i + 1) % 4]));
  }
}

TEST_CASE("channels of random machines use no NVLink twice in a direction") {
  std::mt19937 random(3);
  size_t rings = 0;
  for (int machine = 0; machine < 300; ++machine) {
    const int gpus = 1 + static_cast<int>(random() % 6);
    NodeLinks links = sockets(1, 1, gpus);
    for (int a = 0; a < gpus; ++a) {
      links.switched[static_cast<size_t>(a)] = random() % 4 == 0 ? static_cast<int>(random() % 3) : 0;
      for (int b = 0; b < a; ++b) links.direct[links.at(a, b)] = links.direct[links.at(b, a)] = static_cast<int>(random() % 3);
    }
    for (int rail = 0; rail < gpus; ++rail) links.rails.push_back({rail, 0, {rail}});
    const auto within = rings_inside(links);
    CHECK(wrong(links, within) == "");
    CHECK((within.size() == 1 || alone(within) == within.size()));
    rings += alone(within);
    std::vector<Passage> through;
    for (int rail = 0; rail < gpus; ++rail) through.push_back({rail, (rail ^ 1) < gpus ? rail ^ 1 : rail});
    CHECK(wrong(links, paths_through(links, through)) == "");
  }
  CHECK(rings > 200);
}

TEST_CASE("a search that finds no rings takes no longer in all the more there could have been") {
  NodeLinks links = sockets(2, 2, 4);  // two meshes with one NVLink between them, over which no ring comes back
  for (int a = 0; a < 16; ++a)
    for (int b = 0; b < 16; ++b)
      if (a != b && a / 8 == b / 8) links.direct[links.at(a, b)] = 4;
  links.direct[links.at(0, 8)] = links.direct[links.at(8, 0)] = 1;
  const double before = seconds_of_processor();
  CHECK(alone(rings_inside(links)) == 0);
  CHECK(alone(rings_inside(sockets(1, 1, 576))) == 0);
  const double took = seconds_of_processor() - before;
  INFO(took << " s");
  CHECK((test::sanitized || took < 1));
}

TEST_CASE("hundreds of GPUs at switches have all their rings") { CHECK(rings_inside(switched(144, 18)).size() == 18); }
