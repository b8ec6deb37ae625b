#include "perf/sample_job.h"

#include <fmt/format.h>

#include "engine/choice.h"
#include "perf/regret.h"
#include "test/catch.h"
#include "test/ranks.h"
#include "topo/algorithms.h"

using namespace gyre;
using namespace gyre::perf;
using gyre::test::configured;
using gyre::test::Words;

namespace {

Sample job(int ranks, int nodes, Collective collective = Collective::all_reduce) {
  return {ranks, "shm", ranks / nodes, "", {}, static_cast<size_t>(ranks) * 1024, {1}, collective, nodes, nodes > 1 ? "tcp" : ""};
}
const std::vector<std::pair<int, int>> shapes{{4, 1}, {6, 1}, {4, 2}, {6, 2}, {6, 3}, {3, 3}, {8, 2}, {12, 2}};

// Where a schedule goes along.
std::vector<int> way(const std::string& family, const topo::Shape& shape) {
  const topo::Family& known = *topo::family_named(family);
  if (known.lines == nullptr) return shape.grid;
  std::vector<int> extents;
  for (const topo::Dimension& d : known.lines(shape).value_or(topo::Lines::value_type())) extents.push_back(d.extent);
  return extents;
}

// Each rank on its host.
Words said_on(const std::vector<std::string>& hosts, const char* transport = "auto") {
  const auto config = [&](Rank rank) {
    return configured({fmt::format("GYRE_HOSTID={}", hosts[static_cast<size_t>(rank)]), fmt::format("GYRE_TRANSPORT={}", transport)});
  };
  return test::run_ranks(static_cast<int>(hosts.size()), config, [&](engine::Communicator& all) {
    const auto s = sample_of_job(all, config(all.rank()));
    return s ? fmt::format("{} on {} by {}, {}", s->ranks, s->nodes, s->transport, s->network.empty() ? "alone" : "network")
             : s.error().what;
  });
}

}  // namespace

TEST_CASE("what is measured of a job is what the engine chooses from there") {
  const auto constants = topo::default_constants();
  for (const auto& [ranks, nodes] : shapes) {
    for (const Collective collective : all_collectives()) {
      const auto all = candidates(job(ranks, nodes, collective));
      INFO(ranks << " ranks, " << nodes << " nodes, " << name(collective));
      REQUIRE(all);
      CHECK(regrets(*all, *constants));  // else the choice is not among them
    }
  }
}

TEST_CASE("what is measured of a job goes along the grid that it names") {
  topo::Profiles profiles;
  for (const auto& [ranks, nodes] : shapes) {
    std::vector<engine::Facts> facts(static_cast<size_t>(ranks));
    for (int rank = 0; rank < ranks; ++rank) facts[static_cast<size_t>(rank)].host = std::to_string(rank / (ranks / nodes));
    auto c = *engine::circumstances(configured({}), facts);
    const auto all = candidates(job(ranks, nodes));
    REQUIRE(all);
    for (const Sample& s : *all) {
      const engine::Preference asked = preference(s);
      c.algorithm = asked.algorithm;
      c.grid = asked.grid;
      const auto run = engine::choose(c, {s.collective, 1000, DataType::float32, ReduceOp::sum, 0}, profiles);
      INFO(ranks << " ranks, " << nodes << " nodes, " << s.family << " " << fmt::format("{}", fmt::join(s.grid, "x")));
      REQUIRE(run);
      CHECK(run->instead.empty());
      CHECK(way(run->family, run->shape) == way(s.family, {s.collective, s.ranks, 1, 0, s.grid}));
    }
  }
}

TEST_CASE("samples of a job say its nodes and what joins them, where they can") {
  CHECK(said_on({"a", "a"}) == Words(2, "2 on 1 by shm, alone"));
  CHECK(said_on({"a", "a"}, "tcp") == Words(2, "2 on 1 by tcp, alone"));
  CHECK(said_on({"a", "a", "b", "b"}) == Words(4, "4 on 2 by shm, network"));
  CHECK(said_on({"a", "a", "b", "b"}, "tcp") == Words(4, "4 on 2 by tcp, network"));
  CHECK(said_on({"a", "a", "b"}) == Words(3, "hosts have 2 and 1 ranks, and samples are of hosts with equally many"));
  CHECK(said_on({"a", "b", "a", "b"})[0].starts_with("ranks 0, 2 are on one host, and samples are of ranks that follow each other"));
}

TEST_CASE("after five rounds those go on that were not slower each time than the best's median") {
  std::vector<Sample> all(3, job(2, 1));
  CHECK(in_round(all, 0) == std::vector<size_t>{0, 1, 2});
  all[0].us = {9, 6, 7, 9, 9};  // never as fast as 5
  all[1].us = {5, 4, 5, 6, 9};
  all[2].us = {9, 5, 9, 9, 9};
  CHECK(in_round(all, 4) == std::vector<size_t>{0, 1, 2});
  CHECK(in_round(all, 5) == std::vector<size_t>{1, 2});
}
