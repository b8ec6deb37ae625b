// GYRE_NUMERICS=ordered: the same bits whatever the algorithm, channels, slices, slots, connections and the placement of ranks, those of a
// slow reference of the canonical tree. Random jobs, run by the host's machines under random interleavings and by communicators.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <random>

#include "engine/communicator.h"
#include "engine/host_machine.h"
#include "test/catch.h"
#include "test/engine/backends.h"
#include "test/engine/loopback_mesh.h"
#include "test/engine/posted_mesh.h"
#include "test/kept_log.h"
#include "test/kernels/canonical_reference.h"
#include "test/ranks.h"
#include "test/slow_builds.h"
#include "test/text.h"
#include "test/topo/shapes.h"
#include "topo/algorithms.h"
#include "transport/posted_fifo.h"

using namespace gyre;
using namespace gyre::engine;
using gyre::test::all_configured;
using gyre::test::run_ranks;
using test::Bytes;
using test::Patterns;

namespace {

constexpr std::array reductions{Collective::all_reduce, Collective::reduce_scatter, Collective::reduce};
constexpr std::array sums{ReduceOp::sum, ReduceOp::prod, ReduceOp::avg, ReduceOp::premul_sum};

template <class Some>
auto any_of(const Some& some, std::mt19937_64& random) {
  return some[random() % some.size()];
}

/// Every rank's input to a call, and what the call gives.
class Inputs {
 public:
  Inputs(const Call& call, int ranks, uint64_t seed) : call_(call) {
    std::mt19937_64 random(seed);
    const Patterns special = test::special_patterns(call.type);
    const size_t elements = call.collective == Collective::reduce_scatter ? call.count * static_cast<size_t>(ranks) : call.count;
    Patterns scalars;
    for (int rank = 0; rank < ranks; ++rank) {
      Patterns& parts = parts_.emplace_back();
      for (size_t i = 0; i < elements; ++i) parts.push_back(test::drawn_pattern(random, call.type, special));
      memory_.push_back(test::packed(call.type, parts));
      scalars_.push_back(test::drawn_pattern(random, call.type, special));
    }
    for (size_t i = 0; i < elements; ++i) {
      Patterns column;
      for (const Patterns& parts : parts_) column.push_back(parts[i]);
      expected_.push_back(test::canonical_reference(call.type, call.op, column, scalars_));
    }
  }

  const Bytes& of(Rank rank) const { return memory_[static_cast<size_t>(rank)]; }
  uint64_t scalar(Rank rank) const { return scalars_[static_cast<size_t>(rank)]; }
  bool writes(Rank rank) const { return call_.collective != Collective::reduce || rank == call_.root; }
  /// Where the output is in the input, in place.
  size_t offset(Rank rank) const {
    return call_.collective == Collective::reduce_scatter ? static_cast<size_t>(rank) * call_.count * size_of(call_.type) : 0;
  }
  size_t bytes() const { return call_.count * size_of(call_.type); }
  /// What is wrong with a rank's output; empty: nothing.
  std::string wrong(Rank rank, const std::byte* output) const {
    if (!writes(rank)) return {};
    const Patterns got = test::unpacked(call_.type, Bytes(output, output + bytes()));
    const size_t first = offset(rank) / size_of(call_.type);
    for (size_t i = 0; i < got.size(); ++i) {
      const uint64_t right = expected_[first + i];
      if (!test::same_result(call_.type, got[i], right))
        return fmt::format("rank {} element {} is {:#x} and not {:#x}", rank, i, got[i], right);
    }
    return {};
  }

 private:
  Call call_;
  std::vector<Patterns> parts_;  // [rank][element]
  std::vector<Bytes> memory_;
  Patterns scalars_;
  Patterns expected_;
};

/// The machines of all ranks in one thread; empty: every output is right.
std::string run(const Plan& plan, const Inputs& inputs, const transport::Slots& slots, bool in_place, bool posted,
                std::mt19937_64& random) {
  const auto ranks = static_cast<size_t>(plan.schedule().ranks);
  std::vector<std::unique_ptr<test::LoopbackMesh>> buffered_meshes;
  std::vector<std::unique_ptr<test::PostedMesh>> posted_meshes;
  std::vector<std::pair<size_t, std::unique_ptr<HostMachine>>> machines;
  std::vector<Bytes> in, out, scratch;
  for (size_t rank = 0; rank < ranks; ++rank) {
    in.push_back(inputs.of(static_cast<Rank>(rank)));
    out.emplace_back(inputs.bytes(), std::byte{0x5a});
    scratch.emplace_back(plan.scratch_bytes(), std::byte{0x77});
  }
  const auto output = [&](size_t rank) { return in_place ? in[rank].data() + inputs.offset(static_cast<Rank>(rank)) : out[rank].data(); };
  for (uint32_t channel = 0; channel < plan.schedule().channels; ++channel) {
    if (posted) posted_meshes.push_back(std::make_unique<test::PostedMesh>(ranks, slots, static_cast<uint32_t>(random())));
    if (!posted) buffered_meshes.push_back(std::make_unique<test::LoopbackMesh>(ranks, slots));
    for (size_t rank = 0; rank < ranks; ++rank) {
      const auto fifos = posted ? posted_meshes.back()->fifos(rank) : buffered_meshes.back()->fifos(rank);
      for (uint32_t strand = 0; strand < plan.schedule().strands; ++strand) {
        machines.emplace_back(rank, std::make_unique<HostMachine>(static_cast<Rank>(rank), channel, strand, fifos, Away{8192, 1}));
        const Buffers buffers{in[rank].data(), output(rank), inputs.scalar(static_cast<Rank>(rank))};
        machines.back().second->bind(plan, 7, buffers, scratch[rank].data());
      }
    }
  }
  for (size_t idle = 0; idle < 1000 + 400 * machines.size();) {
    const auto& [rank, machine] = machines[random() % machines.size()];
    for (const auto& mesh : posted_meshes) mesh->progress(rank);
    idle = machine->run(1 + random() % 5) ? 0 : idle + 1;
    if (idle % 64 != 1 || !std::all_of(machines.begin(), machines.end(), [](const auto& m) { return m.second->done(); })) continue;
    for (size_t r = 0; r < ranks; ++r) {
      if (std::string wrong = inputs.wrong(static_cast<Rank>(r), output(r)); !wrong.empty()) return wrong;
    }
    return {};
  }
  return "stuck";
}

/// The same without fused steps, which must give the same bits; null: what an unfused step keeps has no room.
std::shared_ptr<const Proven> unfused(const Proven& fused, const schedule::Schedule& made, const transport::Slots& slots) {
  auto out = std::make_shared<Proven>(fused);
  out->schedule = made;
  schedule::Verifier verifier(out->schedule);
  for (const auto mode : {schedule::Mode::buffered, schedule::Mode::posted}) {
    for (const bool in_place : {false, true}) {
      const uint32_t credits = mode == schedule::Mode::posted ? transport::PostedFifo::certain_credits(slots) : slots.credits;
      auto proof = verifier.run({credits, out->slices, mode, in_place, true});
      if (!proof) return nullptr;
      out->proof = *std::move(proof);
    }
  }
  return out;
}

/// One random way of running a call by this family; nothing: the family has none that keeps the order.
std::optional<std::string> tried(const topo::Family& family, const Call& call, const Inputs& inputs, int ranks, std::mt19937_64& random) {
  topo::Shape shape{call.collective, ranks, 1 + static_cast<uint32_t>(random() % 3), call.root, {}, true};
  if (test::looks_at_grid(family)) shape.grid = any_of(test::grids(ranks), random);
  if (!topo::refusal(family, shape).empty() || !topo::order(family, shape).refusal.empty()) return std::nullopt;
  const transport::Slots slots{2 + static_cast<uint32_t>(random() % 9), (1 + random() % 3) * 4096};
  const auto proven = prove(family.name, shape, slots);
  if (!proven) return proven.error().what;
  auto runs = *proven;
  if (random() % 3 == 0) {
    if (auto other = unfused(*runs, *topo::make(family.name, shape), slots)) runs = std::move(other);
  }
  const auto plan = Plan::make(runs, call, slots.bytes, random() % 2 == 0 ? 4 : 64);
  if (!plan) return plan.error().what;
  const bool in_place = random() % 2 == 0;
  const bool posted = random() % 2 == 0;
  const std::string wrong = run(*plan, inputs, slots, in_place, posted, random);
  if (wrong.empty()) return "";
  return fmt::format("{} of {}, {} credits of {} bytes{}{}: {}", plan->text(), topo::text(shape), slots.credits, slots.bytes,
                     in_place ? ", in place" : "", posted ? ", posted" : "", wrong);
}

}  // namespace

TEST_CASE("ordered sums are those of the canonical tree to the bit, by every family that is not refused", "[ordered]") {
  std::map<std::string_view, int> ran;
  const uint64_t seed = 31;
  std::mt19937_64 random(seed);
  for (int i = 0; i < (test::sanitized ? 80 : 500); ++i) {
    const int ranks = 1 + static_cast<int>(random() % 17);
    Call call{any_of(reductions, random), random() % 300, any_of(all_data_types(), random), any_of(sums, random), 0, 0};
    if (i % 8 == 0) call.count = 3000 + random() % 9000;
    if (ranks > 9) call.count /= 8;
    if (is_integer(call.type) && i % 4 != 0)
      call.type = any_of(std::array{DataType::float16, DataType::bfloat16, DataType::float32}, random);
    if (rooted(call.collective)) call.root = static_cast<Rank>(random() % static_cast<uint64_t>(ranks));
    const Inputs inputs(call, ranks, random());
    for (const topo::Family& family : topo::families()) {
      const auto wrong = tried(family, call, inputs, ranks, random);
      if (!wrong) continue;
      INFO("case " << i << " of seed " << seed << ", " << name(call.type) << " " << name(call.op));
      CHECK(*wrong == "");
      ++ran[family.name];
    }
  }
  for (const char* family : {"naive", "one_shot", "two_shot", "tree", "halving_doubling", "hierarchical", "bucket", "leaders", "ring"}) {
    INFO(family);
    CHECK(ran[family] > 5);
  }
}

namespace {

/// All of one job's calls on this rank: every type, operation and collective; empty: all are as the reference has them.
std::string as_reference(Communicator& communicator, size_t count) {
  const Rank rank = communicator.rank();
  for (const DataType type : all_data_types()) {
    for (size_t op = 0; op < every_reduce_op_count; ++op) {
      for (const Collective collective : reductions) {
        Call call{collective, count, type, static_cast<ReduceOp>(op), collective == Collective::reduce ? communicator.size() - 1 : 0, 0};
        const Inputs inputs(call, communicator.size(), 77 + op);
        call.scalar = inputs.scalar(rank);
        Bytes output(inputs.bytes());
        const Status status = communicator.run(call, inputs.of(rank).data(), output.data());
        std::string wrong = status ? inputs.wrong(rank, output.data()) : status.error().what;
        if (!wrong.empty()) return fmt::format("{} of {} {} {}: {}", name(collective), count, name(type), name(call.op), wrong);
      }
    }
  }
  return {};
}

struct Way {
  std::vector<std::string> settings;
  int ranks;
  int per_host;  ///< ranks that share a GYRE_HOSTID; 0: all, in loopback
};

std::string run(const Way& way) {
  const auto config = [&](Rank rank) {
    std::vector<std::string> settings = way.settings;
    settings.emplace_back("GYRE_NUMERICS=ordered");
    settings.emplace_back(way.per_host == 0 ? "GYRE_TRANSPORT=loopback" : "GYRE_TRANSPORT=auto");
    if (way.per_host != 0) settings.push_back(fmt::format("GYRE_HOSTID=host{}", rank / way.per_host));
    return test::configured(settings);
  };
  return test::first_wrong(run_ranks(way.ranks, config, [](Communicator& c) { return as_reference(c, 130); }));
}

bool reaches_hosts() {
  const auto backends = test::backends();
  return std::any_of(backends.begin(), backends.end(), [](const std::string& backend) { return backend == "tcp" || backend == "ucx"; });
}

}  // namespace

TEST_CASE("a communicator's reductions are ordered whatever its options, for every type and operation", "[ordered]") {
  const std::vector<Way> ways{
      {{}, 1, 0},
      {{}, 2, 0},
      {{}, 3, 0},
      {{"GYRE_CHANNELS=3"}, 4, 0},
      {{"GYRE_ALGORITHM=halving_doubling", "GYRE_SLOT_BYTES=4K"}, 5, 0},
      {{"GYRE_ALGORITHM=tree", "GYRE_SLOTS=2"}, 6, 0},
      {{"GYRE_ALGORITHM=hierarchical", "GYRE_GRID=4x2"}, 8, 0},
      {{"GYRE_ALGORITHM=ring"}, 3, 0},  // which is another, where order matters
      {{"GYRE_ALGORITHM=two_shot", "GYRE_CHANNELS=2"}, 7, 0},
  };
  for (const Way& way : test::sampled(ways)) {
    INFO(way.ranks << " ranks, " << (way.settings.empty() ? "" : way.settings.front()));
    CHECK(run(way) == "");
  }
}

TEST_CASE("a communicator's reductions are ordered wherever its ranks are placed", "[ordered][transport]") {
  if (!reaches_hosts()) return;
  const std::vector<Way> ways{{{}, 2, 1}, {{}, 4, 2}, {{}, 3, 2}, {{"GYRE_ALGORITHM=hierarchical"}, 4, 2}};
  for (const Way& way : ways) {
    INFO(way.ranks << " ranks, " << way.per_host << " a host, " << (way.settings.empty() ? "" : way.settings.front()));
    CHECK(run(way) == "");
  }
}

TEST_CASE("a communicator's reductions are ordered where the ranks of a host show each other their inputs", "[ordered]") {
  const std::vector<Way> ways{{{}, 2, 2}, {{}, 5, 5}};
  for (const Way& way : test::sampled(ways)) {
    INFO(way.ranks << " ranks");
    CHECK(run(way) == "");
  }
}

TEST_CASE("reductions of a part of a job are in the order of its own ranks", "[ordered]") {
  const auto config = all_configured({"GYRE_NUMERICS=ordered", "GYRE_TRANSPORT=loopback"});
  CHECK(test::first_wrong(run_ranks(6, config, [](Communicator& all) -> std::string {
          const auto turned = all.split(0, -all.rank());
          if (!turned) return test::error_of(turned);
          const auto part = (*turned)->split(all.rank() % 2, all.rank() * 5 % 6);
          if (!part) return test::error_of(part);
          const std::string wrong = as_reference(**turned, 33);
          return wrong.empty() ? as_reference(**part, 33) : wrong;
        })) == "");
}

TEST_CASE("reductions of a part whose ranks lie on hosts in turn are in their order", "[ordered][transport]") {
  if (!reaches_hosts()) return;
  const auto config = [](Rank rank) { return test::configured({"GYRE_NUMERICS=ordered", fmt::format("GYRE_HOSTID=host{}", rank / 2)}); };
  CHECK(test::first_wrong(run_ranks(4, config, [](Communicator& all) -> std::string {
          const auto part = all.split(0, std::array{0, 2, 3, 1}[static_cast<size_t>(all.rank())]);
          return part ? as_reference(**part, 130) : test::error_of(part);
        })) == "");
}

TEST_CASE("an algorithm that can't keep the order is replaced, and said why; integers, max and min it may reduce", "[ordered]") {
  const test::KeptLog log;
  const auto config = all_configured({"GYRE_NUMERICS=ordered", "GYRE_ALGORITHM=ring", "GYRE_TRANSPORT=loopback"});
  const auto words = run_ranks(3, config, [](Communicator& c) -> std::string {
    std::string families;
    for (const auto& [type, op] : {std::pair{DataType::float32, ReduceOp::sum}, std::pair{DataType::int32, ReduceOp::sum},
                                   std::pair{DataType::float16, ReduceOp::max}, std::pair{DataType::float64, ReduceOp::avg}}) {
      const auto plan = c.plan({Collective::all_reduce, 1000, type, op, 0, 0});
      if (!plan) return plan.error().what;
      families += (*plan)->schedule().family == "ring" ? "ring " : "other ";
    }
    return families;
  });
  for (const std::string& said : words) CHECK(said == "other ring ring other ");
  CHECK(log.count("all_reduce runs one_shot and not ring: not in the order of ranks: rank ") == words.size());  // once each
}

TEST_CASE("ranks must agree on GYRE_NUMERICS", "[ordered]") {
  const auto words = run_ranks(
      2,
      [](Rank rank) {
        return test::configured({"GYRE_TRANSPORT=loopback", rank == 0 ? "GYRE_NUMERICS=default" : "GYRE_NUMERICS=ordered"});
      },
      [](Communicator&) { return "made"; });
  for (const std::string& said : words) CHECK(test::contains(said, "ranks differ: rank 1 has GYRE_NUMERICS=ordered, rank 0 has default"));
}
