#include "topo/job_channels.h"

#include <algorithm>
#include <random>
#include <set>

#include "schedule/fuse.h"
#include "schedule/verify.h"
#include "test/catch.h"
#include "test/text.h"
#include "test/topo/links.h"
#include "topo/algorithms.h"

using namespace gyre;
using namespace gyre::topo;
using namespace gyre::test;

namespace {

/// Equal nodes, to which ranks are dealt in turn.
std::vector<JobNode> job(const NodeLinks& links, int nodes) {
  std::vector<JobNode> all;
  for (int node = 0; node < nodes; ++node) {
    all.push_back({links, {}});
    for (int gpu = 0; gpu < links.gpus; ++gpu) all.back().ranks.push_back(gpu * nodes + node);
  }
  return all;
}

std::string wrong(const schedule::Schedule& schedule) {
  for (const bool in_place : {false, true}) {
    if (in_place && !schedule.layout().has_in_place()) continue;
    const auto proof = schedule::Verifier(schedule).run({4, 2, schedule::Mode::posted, in_place, false});
    if (!proof) return proof.error().what;
  }
  return {};
}

/// That two ranks exchange messages.
bool deal(const schedule::Schedule& schedule, Rank a, Rank b) {
  for (const schedule::Program& program : schedule.programs) {
    for (const schedule::Step& step : program.steps) {
      for (const Rank to : schedule.peers(step.to)) {
        if (std::minmax(program.rank, to) == std::minmax(a, b)) return true;
      }
    }
  }
  return false;
}

void check_tree(const Tree& tree, size_t nodes, const std::vector<JobNode>& job) {
  size_t roots = 0, crossing = 0;
  for (size_t rank = 0; rank < tree.nodes.size(); ++rank) {
    const Rank parent = tree.nodes[rank].parent;
    roots += parent < 0;
    if (parent < 0) continue;
    const auto node_of = [&](Rank r) {
      return std::ranges::find_if(job, [&](const JobNode& node) { return std::ranges::find(node.ranks, r) != node.ranks.end(); });
    };
    crossing += node_of(parent) != node_of(static_cast<Rank>(rank));
  }
  CHECK(roots == 1);
  CHECK(crossing == nodes - 1);
}

}  // namespace

TEST_CASE("between nodes each rail carries one channel each way, from a GPU near it to one near it") {
  for (int count = 1; count <= 5; ++count) {
    const auto nodes = job(dgx(), count);
    const auto channels = job_channels(nodes);
    REQUIRE(channels);
    REQUIRE(channels->size() == (count == 1 ? 18 : 8));
    for (size_t node = 0; node < nodes.size() && count > 1; ++node) {
      std::set<int> in, out;
      for (const JobChannel& channel : *channels) {
        const Channel &here = channel.through[node], &next = channel.through[(node + 1) % nodes.size()];
        CHECK(here.alone);
        CHECK(here.out == next.in);
        CHECK(here.order.front() == here.in);
        if (count % 2 == 0) CHECK(here.order.back() == here.out);
        in.insert(here.in), out.insert(here.out);
      }
      CHECK(in.size() == 8);
      CHECK(out.size() == 8);
    }
    for (const JobChannel& channel : *channels) {
      CHECK(std::set<Rank>(channel.ring.begin(), channel.ring.end()).size() == static_cast<size_t>(8 * count));
      check_tree(channel.tree, nodes.size(), nodes);
    }
  }
}

TEST_CASE("between nodes a tree stays on its rail, also where rings change theirs") {
  for (const int count : {2, 3, 5}) {
    const auto nodes = job(dgx(), count);
    const auto channels = *job_channels(nodes);
    for (const JobChannel& channel : channels) {
      const auto gpu_and_node = [&](Rank rank) { return std::pair(rank / count, rank % count); };  // as job() deals them
      for (Rank rank = 0; rank < static_cast<Rank>(channel.tree.nodes.size()); ++rank) {
        const Rank parent = channel.tree.nodes[static_cast<size_t>(rank)].parent;
        if (parent < 0 || gpu_and_node(parent).second == gpu_and_node(rank).second) continue;
        CHECK(gpu_and_node(parent).first == gpu_and_node(rank).first);
        CHECK(gpu_and_node(rank).first == channel.through[0].in);
      }
    }
  }
}

TEST_CASE("where two GPUs share a port, a ring comes and goes by it") {
  NodeLinks box = sockets(2, 2, 2);
  box.rails = {{0, 0, {0, 1, 2, 3}}, {1, 0, {4, 5, 6, 7}}};
  const auto channels = job_channels(job(box, 3));
  REQUIRE(channels->size() == 2);
  for (const JobChannel& channel : *channels) {
    for (const Channel& here : channel.through) {
      CHECK(here.in == here.out);
      CHECK(here.order.front() / 4 == here.in);
      CHECK(here.order.back() / 4 == here.in);
    }
  }
}

TEST_CASE("nodes may differ: there are as many channels as rails on the one that has the fewest; GPUs without a port have one") {
  std::vector<JobNode> nodes = job(dgx(), 1);
  nodes.push_back({sockets(1, 1, 2), {8, 9}});
  nodes[1].links.rails = {{0, 0, {0}}, {1, 0, {1}}, {2, 0, {1}}};
  CHECK(job_channels(nodes)->size() == 3);
  nodes[1].links.rails.clear();
  const auto one = *job_channels(nodes);
  REQUIRE(one.size() == 1);
  CHECK(one[0].ring.size() == 10);
  CHECK(one[0].through[1].in == -1);
}

TEST_CASE("half of the trees have the others' leaves as inner nodes") {
  const auto nodes = job(dgx(), 6);
  const auto channels = *job_channels(nodes);
  const auto inner = [&](const JobChannel& channel, size_t node) {
    const Rank head = channel.chain[node * 8];
    return channel.tree.nodes[static_cast<size_t>(head)].children.size() > 1;
  };
  for (size_t node = 0; node < nodes.size(); ++node) CHECK_FALSE((inner(channels[0], node) && inner(channels[1], node)));
}

TEST_CASE("schedules along channels are right, for every collective of rings and trees") {
  for (const int count : {1, 2, 3}) {
    NodeLinks links = mesh();
    links.rails = {{0, 0, {0, 1, 2, 3}}, {1, 0, {4, 5, 6, 7}}};
    const auto channels = *job_channels(job(links, count));
    const auto many = static_cast<uint32_t>(channels.size());
    for (const Collective collective :
         {Collective::all_reduce, Collective::reduce_scatter, Collective::all_gather, Collective::broadcast, Collective::reduce}) {
      const auto ring = along_channels("ring", {collective, 8 * count, many, 5, {}}, channels);
      INFO(count << " nodes: " << name(collective) << ": " << error_of(ring));
      REQUIRE(ring);
      CHECK(wrong(schedule::fuse(*ring)) == "");
    }
    const auto tree = along_channels("tree", {Collective::all_reduce, 8 * count, many, 0, {}}, channels);
    REQUIRE(tree);
    CHECK(wrong(schedule::fuse(*tree)) == "");
  }
}

TEST_CASE("chained trees along a job's chains go along its trees") {
  NodeLinks shared_rails = mesh();
  shared_rails.rails = {{0, 0, {0, 1, 2, 3}}, {1, 0, {4, 5, 6, 7}}};
  for (const NodeLinks& links : {shared_rails, dgx()}) {
    for (const int count : {1, 2, 3, 5}) {
      const auto channels = *job_channels(job(links, count));
      ChannelOrders orders;
      for (const JobChannel& channel : channels) orders.rings.push_back(channel.ring), orders.chains.push_back(channel.chain);
      CHECK((orders.rings != orders.chains) == (count > 1 && links == dgx()));  // where rings change rails
      for (const Collective collective : {Collective::all_reduce, Collective::broadcast, Collective::reduce}) {
        for (const uint32_t pairs : {1U, 5U}) {
          const Rank root = 5;
          const Shape shape{
              collective, 8 * count, pairs, rooted(collective) ? schedule::position_of(orders.rings[0], root) : 0, {8, count}};
          const auto tree = schedule::renamed(*make("chained_tree", shape), along_chains(orders, shape, root));
          INFO(count << " nodes: " << name(collective) << ": " << error_of(tree));
          REQUIRE(tree);
          CHECK(wrong(schedule::fuse(*tree)) == "");
          for (const schedule::Program& program : tree->programs) {
            if (rooted(collective) || program.channel >= channels.size()) continue;
            const auto& whose = channels[program.channel].tree.nodes;
            const auto joined = [&](Rank a, Rank b) {
              return whose[static_cast<size_t>(a)].parent == b || whose[static_cast<size_t>(b)].parent == a;
            };
            for (const schedule::Step& step : program.steps) {
              for (const Rank to : tree->peers(step.to)) CHECK(joined(program.rank, to));
            }
          }
        }
      }
    }
  }
}

TEST_CASE("links that are missing are gone around, or relayed") {
  std::vector<JobNode> nodes = job(sockets(1, 1, 3), 2);
  const std::vector<LinkOverride> missing{{0, 2, 1, true}};  // there is another order
  const auto channels = *job_channels(nodes, missing);
  const auto plain = *along_channels("ring", {Collective::all_reduce, 6, 1, 0, {}}, channels, missing);
  CHECK(plain.strands == 1);
  CHECK_FALSE(deal(plain, 0, 2));

  std::vector<LinkOverride> star;  // all but rank 0's
  for (Rank a = 1; a < 6; ++a) {
    for (Rank b = 1; b < a; ++b) star.push_back({a, b, 1, true});
  }
  const auto around = *job_channels(nodes, star);
  for (const Collective collective : {Collective::all_reduce, Collective::reduce_scatter, Collective::all_gather}) {
    const auto ring = along_channels("ring", {collective, 6, 1, 0, {}}, around, star);
    INFO(error_of(ring));
    REQUIRE(ring);
    CHECK(ring->strands > 1);
    CHECK(wrong(*ring) == "");
    CHECK(wrong(schedule::fuse(*ring)) == "");
    for (const LinkOverride& link : star) CHECK_FALSE(deal(*ring, link.a, link.b));
  }
  star.push_back({0, 3, 1, true});
  CHECK(error_of(along_channels("ring", {Collective::all_reduce, 6, 1, 0, {}}, around, star)).find("no way from rank") !=
        std::string::npos);
  CHECK(error_of(along_channels("ring", {Collective::all_reduce, 6, 1, 0, {}}, around, std::vector<LinkOverride>{{0, 6, 1, true}})) ==
        "a missing link of rank 6 among 6 ranks");
}

TEST_CASE("what is relayed takes no more room than it needs") {
  schedule::RankPairs star;  // all but rank 0's
  for (Rank a = 1; a < 8; ++a) {
    for (Rank b = 1; b < a; ++b) star.emplace_back(b, a);
  }
  const schedule::Schedule ring = *make("ring", {Collective::all_gather, 8, 1, 0, {}});
  const schedule::Schedule relayed = *schedule::relayed(ring, star);
  CHECK(wrong(relayed) == "");
  CHECK(relayed.scratch <= ring.scratch + 7 * ring.chunks);  // a block for each of the ways
}

TEST_CASE("relays of whatever is missing are right, or refused") {
  std::mt19937_64 random(41);
  int ran = 0;
  for (int i = 0; i < 60; ++i) {
    const int ranks = 3 + static_cast<int>(random() % 5);
    schedule::RankPairs missing;
    for (Rank a = 1; a < ranks; ++a) {
      for (Rank b = 0; b < a; ++b) {
        if (random() % 4 == 0) missing.emplace_back(b, a);
      }
    }
    for (const Family& family : families()) {
      for (const Collective collective : all_collectives()) {
        const Shape shape{collective, ranks, 1 + static_cast<uint32_t>(random() % 2), 0, {}};
        if (!refusal(family, shape).empty() || lacks_nodes(family, shape)) continue;
        const auto relayed = schedule::relayed(schedule::fuse(*make(family.name, shape)), missing);
        if (!relayed) {
          CHECK(relayed.error().what.starts_with("no way from rank"));
          continue;
        }
        INFO(text(shape) << " by " << family.name << ", case " << i);
        CHECK(wrong(*relayed) == "");
        for (const auto& [a, b] : missing) CHECK_FALSE(deal(*relayed, a, b));
        ++ran;
      }
    }
  }
  CHECK(ran > 100);
}

TEST_CASE("ranks reach each other as long as there is a way over others") {
  CHECK(schedule::connected(0, {}));
  CHECK(schedule::connected(1, {}));
  CHECK(schedule::connected(3, {{0, 2}}));
  CHECK_FALSE(schedule::connected(3, {{0, 2}, {1, 2}}));
  CHECK_FALSE(schedule::connected(2, {{0, 1}}));
}

TEST_CASE("what differs in a rank has another digest; the same facts have the same") {
  const auto nodes = job(dgx(), 2);
  CHECK(digest(*job_channels(nodes)) == digest(*job_channels(job(dgx(), 2))));
  auto other = nodes;
  std::swap(other[0].ranks[0], other[0].ranks[1]);
  CHECK(digest(*job_channels(nodes)) != digest(*job_channels(other)));
}

TEST_CASE("nodes and shapes that make no sense are refused") {
  auto nodes = job(dgx(), 2);
  const auto channels = *job_channels(nodes);
  nodes[1].ranks[3] = 4;
  CHECK(error_of(job_channels(nodes)) == "no node, or two, have rank 5");
  nodes[1].ranks.pop_back();
  CHECK(error_of(job_channels(nodes)) == "node 1 has 7 ranks for 8 GPUs");
  CHECK(error_of(job_channels({})) == "no nodes");
  CHECK(error_of(along_channels("naive", {Collective::all_reduce, 16, 8, 0, {}}, channels)) ==
        "naive along channels; ring and tree can be");
  CHECK(error_of(along_channels("ring", {Collective::all_reduce, 16, 7, 0, {}}, channels)) ==
        "all_reduce for 16 ranks, 7 channels along 8 channels of 16 ranks");
}

TEST_CASE("many nodes have their channels soon") {
  const auto nodes = job(dgx(), 512);
  const auto channels = job_channels(nodes);
  REQUIRE(channels);
  CHECK(channels->size() == 8);
  CHECK((*channels)[7].ring.size() == 4096);
}
