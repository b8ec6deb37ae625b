#include "topo/graph.h"

#include <cmath>

#include "test/catch.h"

using namespace gyre;
using namespace gyre::topo;

namespace {

const schedule::LinkClass wire{"network", 5e-6, 1e-10, 1e-6, false, {}};
const schedule::LinkClass bus{"local", 1e-6, 1e-11, 0, false, {}};

std::string refused(const Graph& graph) {
  const auto made = network(graph);
  return made ? "" : made.error().what;
}

}  // namespace

TEST_CASE("ranks of a node are joined by its local links, others by the network") {
  const auto made = network(clusters(2, 3, bus, wire));
  REQUIRE(made);
  CHECK(made->ranks == 6);
  CHECK(made->node_of == std::vector<int>{0, 0, 0, 1, 1, 1});
  for (Rank from = 0; from < 6; ++from) {
    for (Rank to = 0; to < 6; ++to) {
      const auto link = made->link(from, to);
      REQUIRE(link);
      const bool together = from / 3 == to / 3;
      CHECK(made->classes[link->link_class].name == (together ? "local" : "network"));
      CHECK(link->beta == (together ? 1e-11 : 1e-10));
    }
  }
}

TEST_CASE("NICs and processors of a node go to its ranks in turn") {
  Graph graph = clusters(2, 3, bus, wire);
  const auto own = network(graph);
  REQUIRE(own);
  for (Rank rank = 0; rank < 6; ++rank) {
    CHECK(own->classes[own->between].port(rank) == static_cast<uint32_t>(rank));
    CHECK(own->processor(rank) == static_cast<uint32_t>(rank));
  }
  graph.nics_per_node = 2;
  graph.processors_per_node = 1;
  const auto shared = network(graph);
  REQUIRE(shared);
  CHECK(shared->classes[shared->between].port_of == std::vector<uint32_t>{0, 1, 0, 2, 3, 2});
  CHECK(shared->classes[shared->inside].port_of.empty());
  CHECK(shared->processor_of == std::vector<uint32_t>{0, 0, 0, 1, 1, 1});
}

TEST_CASE("a link can be slower or missing, in both directions") {
  Graph graph = uniform(4, bus);
  graph.overrides = {{2, 1, 3, false}, {0, 3, 1, true}};
  const auto made = network(graph);
  REQUIRE(made);
  CHECK(made->link(1, 2)->beta == 3e-11);
  CHECK(made->link(2, 1)->beta == 3e-11);
  CHECK_FALSE(made->link(0, 3));
  CHECK_FALSE(made->link(3, 0));
  CHECK(made->link(0, 1)->beta == 1e-11);
}

TEST_CASE("a graph that makes no sense is refused by name") {
  const auto with = [](auto change) {
    Graph graph = clusters(2, 2, bus, wire);
    change(graph);
    return refused(graph);
  };
  CHECK(refused({}) == "graph: no ranks");
  CHECK(with([](Graph& g) { g.node_of[1] = -1; }) == "graph: node -1 for 4 ranks");
  CHECK(with([](Graph& g) { g.network.beta = -1; }) == "graph: beta of network is -1; it must be a number, 0 or more");
  CHECK(with([](Graph& g) { g.local.alpha = NAN; }) == "graph: alpha of local is nan; it must be a number, 0 or more");
  CHECK(with([](Graph& g) { g.costs.gamma = INFINITY; }) == "graph: gamma of a rank is inf; it must be a number, 0 or more");
  CHECK(with([](Graph& g) { g.nics_per_node = -1; }) == "graph: -1 NICs on a node");
  CHECK(with([](Graph& g) { g.overrides = {{0, 4, 1, false}}; }) == "graph: a link of rank 4 among 4 ranks");
  CHECK(with([](Graph& g) { g.overrides = {{2, 2, 1, false}}; }) == "graph: a link from rank 2 to itself");
}
