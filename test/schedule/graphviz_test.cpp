#include "schedule/graphviz.h"

#include "test/catch.h"
#include "test/golden.h"
#include "test/schedule/machines.h"
#include "test/text.h"

using namespace gyre;
using namespace gyre::schedule;
using test::made;
using test::occurrences;

namespace {

std::string drawn(const Schedule& schedule, const std::vector<int>& node_of = {}) {
  const auto text = graphviz(schedule, node_of);
  return text ? *text : text.error().what;
}

}  // namespace

TEST_CASE("the graph of the ring of three ranks is as drawn") {
  CHECK(test::golden_difference("ring_3.dot", drawn(made("ring", 3))) == "");
}
TEST_CASE("the graph of the tree of four ranks is as drawn") { CHECK(test::golden_difference("tree_4.dot", drawn(made("tree", 4))) == ""); }

TEST_CASE("a graph has every rank and an arrow per direction in which messages go") {
  const std::string ring = drawn(made("ring", 5));
  for (Rank r = 0; r < 5; ++r) {
    CHECK(occurrences(ring, "\n  r" + std::to_string(r) + " [label=") == 1);
    CHECK(occurrences(ring, "r" + std::to_string(r) + " -> r" + std::to_string((r + 1) % 5) + " [label=\" 1-8 \"") == 1);
  }
  CHECK(occurrences(ring, " -> ") == 5);
  CHECK(ring.find("layout=neato") != std::string::npos);

  // Both directions of an exchange are one arrow with two heads.
  const std::string pairs = drawn(made("halving_doubling", 4));
  CHECK(occurrences(pairs, " -> ") == 4);
  CHECK(occurrences(pairs, "dir=both") == 4);
  CHECK(occurrences(drawn(made("ring", 4, 2)), "tooltip=\"channel 1") == 4);
}

TEST_CASE("a tree hangs from its root") {
  const std::string up = drawn(made("tree", {Collective::reduce, 4, 1, 2, {}}));
  CHECK(up.find("layout=dot") != std::string::npos);
  CHECK(occurrences(up, "dir=back") == 3);
  CHECK(up.find("c0r2 [label=\"2\", shape=doublecircle]") != std::string::npos);
  const std::string both = drawn(made("tree", 4));
  CHECK(occurrences(both, "c0r0 -> c0r1") == 2);
  CHECK(occurrences(both, "c0r1 -> c0r0") == 0);
  CHECK(occurrences(both, "dir=back") == 3);
  // A tree for each channel.
  const std::string trees = drawn(made("double_tree", 4));
  CHECK(occurrences(trees, "subgraph cluster_") == 2);
  CHECK(occurrences(trees, "[label=\"3\"") == 2);
}

TEST_CASE("ranks of a node are drawn together") {
  const std::string text = drawn(made("hierarchical", {Collective::all_reduce, 4, 1, 0, {2, 2}}), {0, 0, 1, 1});
  CHECK(text.find("subgraph cluster_0 {\n  label=\"node 0\"\n  r0 [label=\"0\"]\n  r1 [label=\"1\"]\n  }\n") != std::string::npos);
  CHECK(text.find("subgraph cluster_1 {\n  label=\"node 1\"\n  r2 [label=\"2\"]\n  r3 [label=\"3\"]\n  }\n") != std::string::npos);
}

TEST_CASE("one rank alone is drawn alone") {
  const std::string text = drawn(made("ring", 1));
  CHECK(occurrences(text, " -> ") == 0);
  CHECK(text.find("ring all_reduce for 1 rank: 0 hops") != std::string::npos);
}
