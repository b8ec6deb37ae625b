// Communicators whose ranks know where their GPUs are: who comes after whom, and what they compute so.
#include "engine/gpu_channels.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "engine/communicator.h"
#include "test/catch.h"
#include "test/engine/gpu_rows.h"
#include "test/kept_log.h"
#include "test/ranks.h"
#include "test/text.h"

using namespace gyre;
using namespace gyre::engine;
using schedule::RankOrder;
using test::all_configured;
using test::configured;
using test::contains;
using test::error_of;
using test::first_wrong;
using test::KeptLog;
using test::row_of_circle;
using test::run_ranks;
using test::Words;

namespace {

constexpr Call sum_of(size_t count) { return {Collective::all_reduce, count, DataType::int32, ReduceOp::sum, 0}; }

/// Ranks of these hosts, the GPUs of each joined in a circle that passes every second one.
std::vector<Facts> on_gpus(const std::vector<std::string>& hosts) {
  std::vector<Facts> facts(hosts.size());
  for (size_t rank = 0; rank < hosts.size(); ++rank) {
    facts[rank].host = hosts[rank];
    const auto own = std::count(hosts.begin(), hosts.begin() + static_cast<std::ptrdiff_t>(rank), hosts[rank]);
    const auto gpus = std::count(hosts.begin(), hosts.end(), hosts[rank]);
    facts[rank].gpu = topo::text(row_of_circle(static_cast<int>(own), static_cast<int>(gpus), 2));
  }
  return facts;
}

/// By channel, the ranks to which this one sends in the call.
std::vector<std::vector<Rank>> peers(Communicator& communicator, const Call& call) {
  const auto& made = (*communicator.plan(call))->schedule();
  std::vector<std::vector<Rank>> out(made.channels);
  for (const schedule::Program& program : made.programs) {
    if (program.rank != communicator.rank()) continue;
    for (const schedule::Step& step : program.steps) {
      for (const Rank to : made.peers(step.to)) {
        auto& known = out[program.channel];
        if (std::ranges::find(known, to) == known.end()) known.push_back(to);
      }
    }
  }
  return out;
}

/// Every collective that rings have, on numbers that tell rank and place.
std::string wrong_result(Communicator& all) {
  const int ranks = all.size();
  const auto n = static_cast<size_t>(ranks);
  for (const size_t count : {size_t{1}, size_t{5000}}) {
    const auto value = [&](Rank rank, size_t i) { return static_cast<int32_t>(i * 7 + static_cast<size_t>(rank) * 1000); };
    const auto sum = [&](size_t i) {
      int32_t total = 0;
      for (Rank rank = 0; rank < ranks; ++rank) total += value(rank, i);
      return total;
    };
    std::vector<int32_t> own(count * n), out(count * n);
    for (size_t i = 0; i < own.size(); ++i) own[i] = value(all.rank(), i);
    const auto run = [&](Collective collective, Rank root) {
      std::ranges::fill(out, -1);
      return all.run({collective, count, DataType::int32, ReduceOp::sum, root}, own.data(), out.data());
    };
    const auto right = [&](size_t elements, auto expected) {
      for (size_t i = 0; i < elements; ++i) {
        if (out[i] != expected(i)) return false;
      }
      return true;
    };
    if (const Status ran = run(Collective::all_reduce, 0); !ran || !right(count, sum)) return "all_reduce " + error_of(ran);
    if (const Status ran = run(Collective::reduce_scatter, 0);
        !ran || !right(count, [&](size_t i) { return sum(static_cast<size_t>(all.rank()) * count + i); }))
      return "reduce_scatter " + error_of(ran);
    if (const Status ran = run(Collective::all_gather, 0);
        !ran || !right(count * n, [&](size_t i) { return value(static_cast<Rank>(i / count), i % count); }))
      return "all_gather " + error_of(ran);
    for (Rank root = 0; root < ranks; ++root) {
      if (const Status ran = run(Collective::broadcast, root); !ran || !right(count, [&](size_t i) { return value(root, i); }))
        return "broadcast " + error_of(ran);
      if (const Status ran = run(Collective::reduce, root); !ran || (all.rank() == root && !right(count, sum)))
        return "reduce " + error_of(ran);
    }
  }
  return {};
}

}  // namespace

TEST_CASE("positions follow the NVLinks inside of hosts, whose extents stay") {
  const auto facts = on_gpus({"a", "b", "a", "b", "a", "b", "a", "b", "a", "b"});
  const Words words = run_ranks(1, all_configured({}), [&](Communicator& one) {
    const auto gpus = *gpu_ranks(facts);
    const auto found = gpu_channels(one.bootstrap(), gpus, {});
    if (!found) return found.error().what;
    const Placed at = placed(facts, *found);
    return fmt::format("{} | {} | {}", fmt::join(at.hosts, "x"), fmt::join(at.order, " "), fmt::join(topo::rails_near(gpus), " "));
  });
  // From the GPU near the first port to the one near the second, with one hop that no NVLink has; then back.
  CHECK(words[0] == "5x2 | 0 4 8 6 2 3 7 9 5 1 | mlx5_0:1 mlx5_1:1 mlx5_2:1 mlx5_3:1 mlx5_4:1");
}

TEST_CASE("a ring on two channels goes along two rings of NVLinks, and its sums are right") {
  CHECK(first_wrong(
            run_ranks(5, all_configured({"GYRE_CHANNELS=2", "GYRE_ALGORITHM=ring", "GYRE_TRANSPORT=loopback"}), [](Communicator& all) {
              const Rank rank = all.rank();
              const auto made = all.split(0, rank, nullptr, row_of_circle(rank, 5, 2));
              if (!made) return error_of(made);
              const auto to = peers(**made, sum_of(1000));
              if (to != std::vector<std::vector<Rank>>{{(rank + 2) % 5}, {(rank + 3) % 5}}) return std::string("other peers");
              if (!contains((*(*made)->plan(sum_of(1000)))->text(), " order=")) return std::string("no order in the plan's name");
              return wrong_result(**made);
            })) == "");
}

TEST_CASE("all families go in the order of channel 0, of one host or of several; ordered sums by the ranks' numbers") {
  for (const char* algorithm : {"ring", "hierarchical", "halving_doubling", "chained_tree", "auto"}) {
    for (const char* channels : {"0", "3"}) {
      INFO(algorithm << ", " << channels << " channels");
      const auto config = [&](Rank rank) {
        return configured({std::string("GYRE_ALGORITHM=") + algorithm, std::string("GYRE_CHANNELS=") + channels, "GYRE_TRANSPORT=tcp",
                           rank % 2 == 0 ? "GYRE_HOSTID=a" : "GYRE_HOSTID=b"});
      };
      CHECK(first_wrong(run_ranks(6, config, [](Communicator& all) {
              const auto made = all.split(0, all.rank(), nullptr, row_of_circle(all.rank() / 2, 3, 1));
              return made ? wrong_result(**made) : error_of(made);
            })) == "");
    }
  }
  CHECK(first_wrong(run_ranks(5, all_configured({"GYRE_NUMERICS=ordered", "GYRE_TRANSPORT=loopback"}), [](Communicator& all) {
          const auto made = all.split(0, all.rank(), nullptr, row_of_circle(all.rank(), 5, 2));
          const Call floats{Collective::all_reduce, 1000, DataType::float32, ReduceOp::sum, 0};
          const bool numbers = !contains((*(*made)->plan(floats))->text(), " order=");
          return numbers && contains((*(*made)->plan(sum_of(1000)))->text(), " order=") ? "" : "the wrong one has an order";
        })) == "");
}

TEST_CASE("chained trees go along each channel's own chains, the root in its place on all") {
  const std::vector<RankOrder> rings{{0, 1, 2, 3, 7, 6, 5, 4}, {1, 0, 3, 2, 6, 7, 4, 5}};
  const std::vector<RankOrder> chains{{0, 1, 2, 3, 4, 5, 6, 7}, {1, 0, 3, 2, 5, 4, 7, 6}};
  const auto facts = on_gpus({"a", "a", "a", "a", "b", "b", "b", "b"});
  auto c = *circumstances(configured({"GYRE_ALGORITHM=chained_tree"}), facts);
  c.placed = placed(facts, {rings, chains});
  topo::Profiles profiles;
  const Choice all = *choose(c, sum_of(1000), profiles);
  CHECK(all.family == "chained_tree");
  CHECK(all.orders == std::vector<RankOrder>{chains[0], {2, 3, 0, 1, 6, 7, 4, 5}});  // whose chains begin at the end, as odd channels' do
  const Choice rooted = *choose(c, {Collective::broadcast, 1000, DataType::int32, ReduceOp::sum, 6}, profiles);
  CHECK(rooted.shape.root == 5);  // of the first ring
  CHECK(rooted.orders == std::vector<RankOrder>{{0, 1, 2, 3, 5, 6, 7, 4}, {2, 3, 0, 1, 5, 6, 7, 4}});
}

TEST_CASE("what can't run in the order of GPUs runs by the ranks' numbers where hosts stay together") {
  const auto facts = on_gpus({"a", "a", "a", "a", "a", "a", "a"});
  const std::vector<RankOrder> rings{{0, 2, 4, 6, 1, 3, 5}};
  auto c = *circumstances(configured({}), facts);
  c.placed = placed(facts, {rings, rings});
  topo::Profiles profiles;
  const Call call{Collective::broadcast, 8, DataType::int32, ReduceOp::sum, 2};
  const Choice first = *choose(c, call, profiles);
  CHECK(first.orders == rings);
  CHECK(first.shape.root == 1);
  const Choice second = *choose(c, call, profiles, {{key(first), "no"}});
  CHECK(second.family == first.family);
  CHECK(second.orders.empty());
  CHECK(second.shape.root == 2);
}

TEST_CASE("hosts stay known to calls by the ranks' numbers, in whatever order channels go around them") {
  const auto facts = on_gpus({"a", "a", "b", "b", "c", "c"});
  const std::vector<RankOrder> rings{{0, 1, 5, 4, 2, 3}};
  auto c = *circumstances(configured({"GYRE_NUMERICS=ordered"}), facts);
  c.placed = placed(facts, {rings, rings});
  const Call by_numbers{Collective::all_reduce, 1000, DataType::float32, ReduceOp::sum, 0};
  CHECK(query(c, by_numbers, false).placement.per_node == 2);
  c.algorithm = "hierarchical";
  topo::Profiles profiles;
  const Choice choice = *choose(c, sum_of(1000), profiles);
  REQUIRE(choice.orders == rings);
  CHECK(choose(c, sum_of(1000), profiles, {{key(choice), "no"}})->orders.empty());
}

TEST_CASE("between ranks that nothing joins channels have neither neighbours nor relays, where there is another order") {
  std::vector<Facts> facts = on_gpus({"a", "a", "a", "a"});
  for (Rank rank = 0; rank < 4; ++rank) {  // all at a switch
    topo::GpuRow row = row_of_circle(rank, 4, 1);
    for (topo::GpuRow::Other& other : row.others) other.direct = 0;
    row.switched = 2;
    facts[static_cast<size_t>(rank)].gpu = topo::text(row);
  }
  auto c = *circumstances(configured({"GYRE_ALGORITHM=ring", "GYRE_CHANNELS=2"}), facts);
  c.missing = {{0, 1}};
  const Words words = run_ranks(1, all_configured({}), [&](Communicator& one) {
    const auto gpus = *gpu_ranks(facts);
    const auto found = gpu_channels(one.bootstrap(), gpus, c.missing);
    if (found) c.placed = placed(facts, *found);
    return error_of(found);
  });
  REQUIRE(words[0] == "");
  topo::Profiles profiles;
  const Choice choice = *choose(c, sum_of(1000), profiles);
  REQUIRE(choice.orders.size() == 2);
  const schedule::Schedule made = *schedule::renamed(*topo::make("ring", choice.shape), choice.orders);
  CHECK(schedule::relayed(made, c.missing)->strands == 1);
}

TEST_CASE("a rank that does not know where its GPU is costs all ranks the channels, with a reason, and no more") {
  const KeptLog log;
  CHECK(first_wrong(run_ranks(3, all_configured({"GYRE_TRANSPORT=loopback"}), [](Communicator& all) {
          const auto row = all.rank() == 1 ? std::optional<topo::GpuRow>() : row_of_circle(all.rank(), 3, 1);
          const auto made = all.split(0, all.rank(), nullptr, row);
          if (!made) return error_of(made);
          return contains((*(*made)->plan(sum_of(10)))->text(), " order=") ? "an order" : wrong_result(**made);
        })) == "");
  CHECK(log.has("no channels over GPUs: rank 1 does not know where its GPU is"));
}

TEST_CASE("which order and how many channels there are is said") {
  const KeptLog log;
  CHECK(first_wrong(run_ranks(5, all_configured({"GYRE_TRANSPORT=loopback"}), [](Communicator& all) {
          return error_of(all.split(0, all.rank(), nullptr, row_of_circle(all.rank(), 5, 2)));
        })) == "");
  CHECK(log.has("GPUs: 2 channels, ranks in the order 0 2 4 1 3; ports near them: mlx5_0:1, mlx5_1:1"));
}

TEST_CASE("channels that differ are an error on all ranks that names one") {
  const Words words = run_ranks(3, all_configured({}),
                                [](Communicator& all) { return error_of(same_channels(all.bootstrap(), all.rank() == 2 ? 7U : 10U)); });
  for (const std::string& word : words)
    CHECK(word == "ranks differ: rank 2 has channels over GPUs with the digest 0000000000000007, rank 0 has 000000000000000a");
}

TEST_CASE("a rank's words that are none of a GPU's are an error that names it") {
  CHECK(first_wrong(run_ranks(1, all_configured({}), [](Communicator&) -> std::string {
          for (const char* junk : {"x", "{}", "[1,2]", R"({"gpu":"a","switched":0,"others":[{}],"rails":[]})"}) {
            auto facts = on_gpus({"a", "b", "b"});
            facts[2].gpu = junk;
            const std::string said = error_of(gpu_ranks(facts));
            if (!said.starts_with("rank 2: what a rank says of its GPU: ")) return junk + (": " + said);
          }
          return "";
        })) == "");
}
