#include "perf/fit.h"

#include <fmt/format.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>

#include "base/unique.h"
#include "perf/regret.h"
#include "perf/search.h"
#include "test/catch.h"

using namespace gyre;
using namespace gyre::perf;

namespace {

topo::Costs host() { return *topo::default_constants()->machine("host"); }

/// What a host with these costs would measure, by the simulator.
std::vector<Sample> simulated(const topo::Costs& costs, int ranks) {
  std::vector<Sample> all;
  for (const std::string family : {"ring", "one_shot", "tree", "two_shot", "naive"}) {
    for (size_t bytes = 8; bytes <= 16 << 20; bytes *= 8) {
      Sample s{ranks, "shm", 2, family, {}, bytes, {}};
      const double us = *simulated_us(s, costs);
      s.us = {us, us * 1.01, us * 0.99};
      all.push_back(s);
    }
  }
  return all;
}

/// Of what such costs say on the simulator, the middle.
double error_with(const topo::Costs& costs, const std::vector<Sample>& samples) {
  std::vector<double> said;
  for (const Sample& s : samples) said.push_back(*simulated_us(s, costs));
  return median_error(said, samples);
}

}  // namespace

TEST_CASE("the search finds the least of a function of several numbers") {
  const auto error = [](const std::vector<double>& at) {
    return std::abs(std::log(at[0] / 3e-6)) + std::abs(std::log(at[1] / 50)) + std::abs(std::log(at[0] * at[1] / 1.5e-4));
  };
  const auto found = search_least({1, 1}, error);
  CHECK(found[0] == Approx(3e-6).epsilon(0.02));
  CHECK(found[1] == Approx(50).epsilon(0.02));
}

TEST_CASE("constants fitted to a simulated host predict it", "[long]") {
  topo::Costs other = host();
  other.link[topo::inside].alpha *= 20;
  other.link[topo::inside].beta *= 3;
  other.rank.gamma *= 4;
  other.rank.step *= 5;
  const auto samples = simulated(other, 2);
  const auto fitted = fit(samples, host());
  REQUIRE(fitted);
  CHECK(error_with(host(), samples) > 0.5);
  CHECK(error_with(*fitted, samples) < 0.05);
}

TEST_CASE("constants fitted to simulated nodes are of the link between them, and predict it", "[long]") {
  topo::Costs other = host();
  other.link[topo::between].alpha *= 3;
  other.link[topo::between].beta /= 6;
  std::vector<Sample> samples;
  for (const std::string family : {"ring", "one_shot", "hierarchical", "leaders", "naive"}) {
    const bool by_nodes = family == "hierarchical" || family == "leaders";
    for (size_t bytes = 8; bytes <= 16 << 20; bytes *= 8) {
      Sample s{4, "shm", 2, family, {}, bytes, {}, Collective::all_reduce, 2, "tcp"};
      if (by_nodes) s.grid = {2, 2};
      s.us = {*simulated_us(s, other)};
      samples.push_back(s);
    }
  }
  const auto fitted = fit(samples, host());
  REQUIRE(fitted);
  CHECK(fitted->link[topo::inside].alpha == host().link[topo::inside].alpha);
  CHECK(fitted->rank.step == host().rank.step);
  CHECK(error_with(host(), samples) > 0.5);
  CHECK(error_with(*fitted, samples) < 0.06);  // what was fitted were prices, which one_shot has up to 1.15 of the simulated time
}

TEST_CASE("the middle error is that of the middle sample, whichever side it errs on") {
  const std::vector<Sample> samples{
      {2, "shm", 2, "ring", {}, 8, {10}}, {2, "shm", 2, "ring", {}, 8, {10}}, {2, "shm", 2, "ring", {}, 8, {10}}};
  CHECK(median_error(std::vector<double>{10, 12, 5}, samples) == Approx(0.2));
}

TEST_CASE("the machine of a sample is told by transport and load") {
  CHECK(machine_of({2, "shm", 2, "ring", {}, 8, {1}}) == "host");
  CHECK(machine_of({4, "shm", 2, "ring", {}, 8, {1}}) == "host_crowded");
  CHECK(machine_of({2, "ucx", 2, "ring", {}, 8, {1}}) == "host_ucx");
  CHECK(machine_of({8, "ucx", 2, "ring", {}, 8, {1}}) == "host_ucx_crowded");
  CHECK(machine_of({2, "verbs", 2, "ring", {}, 8, {1}}) == "host_verbs");
  CHECK(machine_of({2, "tcp", 2, "ring", {}, 8, {1}}) == "host_tcp");
  CHECK(machine_of({8, "tcp", 2, "ring", {}, 8, {1}}) == "host_tcp_crowded");
  const auto between = [](int ranks, const char* transport, int processors, const char* network) {
    return Sample{ranks, transport, processors, "ring", {}, 8, {1}, Collective::all_reduce, 2, network};
  };
  CHECK(machine_of(between(4, "shm", 2, "tcp")) == "host");
  CHECK(machine_of(between(6, "shm", 2, "tcp")) == "host_crowded");
  CHECK(machine_of(between(2, "tcp", 1, "tcp")) == "host_tcp");
  CHECK(network_machine_of(between(4, "shm", 2, "tcp")) == "host");
  CHECK(network_machine_of(between(4, "shm", 2, "verbs")) == "host_verbs");
  CHECK(network_machine_of(between(6, "verbs", 2, "verbs")) == "host_verbs_crowded");
  const auto constants = topo::default_constants();
  CHECK(costs_of(between(4, "shm", 2, "verbs"), *constants)->link[topo::between].name == "host_verbs");
  CHECK(costs_of(between(4, "shm", 2, "verbs"), *constants)->link[topo::inside].name == "host");
}

TEST_CASE("regret is the time of the chosen over that of the best, of the middle rounds") {
  std::vector<Sample> samples;
  for (const topo::Family& family : topo::families()) {
    if (topo::refusal(family, {Collective::all_reduce, 2, 1, 0, {}}).empty()) {
      samples.push_back({2, "shm", 2, std::string(family.name), {}, 8, {30, 20, 40}});
    }
  }
  const auto constants = topo::default_constants();
  REQUIRE(constants);
  const auto level = regrets(samples, *constants);
  REQUIRE(level);
  REQUIRE(level->size() == 1);
  CHECK(level->front().chosen_ratio == 1);
  CHECK(level->front().best_spread == Approx(40.0 / 30));
  for (Sample& s : samples) {
    if (s.family != level->front().chosen) s.us = {15};
  }
  CHECK(regrets(samples, *constants)->front().chosen_ratio == 2);

  std::erase_if(samples, [&](const Sample& s) { return s.family == level->front().chosen; });
  const auto missing = regrets(samples, *constants);
  REQUIRE_FALSE(missing);
  CHECK(missing.error().what.find("would be taken and was not measured") != std::string::npos);
}

TEST_CASE("samples are read as they were written, and a line that is none is named") {
  std::string path = "/tmp/gyre-samples-XXXXXX";
  REQUIRE(UniqueFd(mkstemp(path.data())));
  const std::vector<Sample> written{{2, "shm", 2, "ring", {}, 8, {1.5, 2.5}},
                                    {12, "ucx", 2, "bucket", {4, 3}, 1024, {7}},
                                    {3, "tcp", 2, "tree", {}, 96, {7}, Collective::all_gather},
                                    {4, "verbs", 2, "bucket", {2, 2}, 8, {7}, Collective::all_reduce, 2, "verbs"}};
  REQUIRE(append_samples(path, "gyre-perf measure", {}, written));
  REQUIRE(append_samples(path, "gyre-perf measure", {}, {}));
  const auto read = read_samples({path});
  REQUIRE(read);
  REQUIRE(read->size() == 4);
  CHECK((*read)[0].median_us() == 2);
  CHECK((*read)[1].grid == std::vector{4, 3});
  CHECK(((*read)[1].transport == "ucx" && (*read)[1].collective == Collective::all_reduce));
  CHECK(((*read)[2].collective == Collective::all_gather && (*read)[2].block_bytes() == 32));
  CHECK(((*read)[2].nodes == 1 && (*read)[2].network.empty()));
  CHECK(((*read)[3].nodes == 2 && (*read)[3].transport == "verbs" && (*read)[3].network == "verbs"));

  const auto on_nodes = [](const char* nodes) {
    return fmt::format(R"({{"ranks":4,"transport":"shm","processors":2,"algorithm":"ring","grid":[],"bytes":8,"us":[1],{}}})", nodes);
  };
  const std::vector<std::string> all_wrong{
      on_nodes(R"("nodes":3,"network":"tcp")"),
      on_nodes(R"("nodes":1,"network":"tcp")"),
      on_nodes(R"("nodes":2,"network":"shm")"),
      on_nodes(R"("nodes":2)"),
      on_nodes(R"("network":"tcp")"),
      "nonsense",
      "{}",
      R"({"ranks":0,"transport":"shm","processors":2,"algorithm":"ring","grid":[],"bytes":8,"us":[1]})",
      R"({"ranks":2,"transport":"shm","processors":2,"algorithm":"ring","grid":[],"bytes":8,"us":[]})",
      R"({"collective":"all_gather","ranks":3,"transport":"shm","processors":2,"algorithm":"ring","grid":[],"bytes":16,"us":[1]})",
      R"({"collective":"gossip","ranks":2,"transport":"shm","processors":2,"algorithm":"ring","grid":[],"bytes":8,"us":[1]})"};
  for (const std::string& wrong : all_wrong) {
    INFO(wrong);
    std::ofstream(path, std::ios::trunc) << wrong << '\n';
    const auto refused = read_samples({path});
    REQUIRE_FALSE(refused);
    CHECK(refused.error().what.find(path + ":1: ") == 0);
  }
  std::remove(path.c_str());
  CHECK_FALSE(read_samples({path}));
}
