// Every schedule of every collective, run by the host's machines under random interleavings, against the definitions. All ranks are in
// one thread; a seeded scheduler picks which machine runs how many steps. Families that come later are covered by being in families().
#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <random>

#include "engine/host_machine.h"
#include "test/catch.h"
#include "test/engine/job_memory.h"
#include "test/engine/loopback_mesh.h"
#include "test/engine/posted_mesh.h"
#include "test/slow_builds.h"
#include "topo/algorithms.h"

using namespace gyre;
using namespace gyre::engine;

namespace {

enum class Carried { buffered, posted };

/// The machines of all ranks, joined.
class Job {
 public:
  Job(const schedule::Schedule& schedule, const transport::Slots& slots, Carried carried, uint32_t seed) : random_(seed) {
    const auto ranks = static_cast<size_t>(schedule.ranks);
    for (uint32_t channel = 0; channel < schedule.channels; ++channel) {
      if (carried == Carried::posted) {
        posted_.push_back(std::make_unique<test::PostedMesh>(ranks, slots, seed + channel * 100));
      } else {
        buffered_.push_back(std::make_unique<test::LoopbackMesh>(ranks, slots));
      }
      for (size_t rank = 0; rank < ranks; ++rank) {
        const auto fifos = carried == Carried::posted ? posted_.back()->fifos(rank) : buffered_.back()->fifos(rank);
        for (uint32_t strand = 0; strand < schedule.strands; ++strand) {
          machines_.push_back(std::make_unique<HostMachine>(static_cast<Rank>(rank), channel, strand, fifos, Away{8192, 1}));
          ranks_.push_back(rank);
        }
      }
    }
  }

  template <class T>
  std::string run(const Plan& plan, uint64_t word, test::JobMemory<T>& memory) {
    std::vector<std::vector<T>> scratch(static_cast<size_t>(plan.schedule().ranks), std::vector<T>(plan.scratch(), static_cast<T>(99)));
    for (size_t i = 0; i < machines_.size(); ++i) {
      auto* bytes = reinterpret_cast<std::byte*>(scratch[ranks_[i]].data());
      machines_[i]->bind(plan, word, memory.buffers(static_cast<Rank>(ranks_[i])), bytes);
    }
    for (size_t idle = 0; idle < 1000 + 400 * machines_.size();) {
      const size_t i = random_() % machines_.size();
      for (const auto& mesh : posted_) mesh->progress(ranks_[i]);
      idle = machines_[i]->run(1 + random_() % 5) ? 0 : idle + 1;
      if (idle % 64 == 1 && std::all_of(machines_.begin(), machines_.end(), [](const auto& machine) { return machine->done(); })) {
        return memory.wrong();
      }
    }
    return "stuck";
  }

 private:
  std::mt19937 random_;
  std::vector<std::unique_ptr<test::LoopbackMesh>> buffered_;  // by channel
  std::vector<std::unique_ptr<test::PostedMesh>> posted_;
  std::vector<std::unique_ptr<HostMachine>> machines_;
  std::vector<size_t> ranks_;  // of the machines
};

/// Some of the sizes that are worth a look.
std::vector<size_t> counts_to_try(const schedule::Schedule& schedule, size_t slot_bytes, std::mt19937& random) {
  std::vector<size_t> all{
      0, 1, schedule.chunks - 1, schedule.chunks, 1 + random() % 500, slot_bytes / 4 + random() % slot_bytes / 4, slot_bytes * 3};
  std::shuffle(all.begin(), all.end(), random);
  all.resize(2);
  return all;
}

/// One way of running a call; in `bits` the result.
template <class T>
std::string result(const Plan& plan, const transport::Slots& slots, bool in_place, Carried carried, uint32_t seed,
                   std::string* bits = nullptr) {
  Job job(plan.schedule(), slots, carried, seed);
  test::JobMemory<T> memory(plan.call(), plan.schedule().ranks, in_place);
  const std::string wrong = job.run(plan, seed, memory);
  if (bits != nullptr) *bits = memory.bits();
  if (wrong.empty()) return {};
  return fmt::format("{}, {} credits of {} bytes, seed {}{}{}: {}", plan.text(), slots.credits, slots.bytes, seed,
                     in_place ? ", in place" : "", carried == Carried::posted ? ", posted" : "", wrong);
}

/// Integers, which must be exact, in all ways of running them.
std::string integers(const std::shared_ptr<const Proven>& proven, Rank root, const transport::Slots& slots, std::mt19937& random) {
  const auto& schedule = proven->schedule;
  for (const size_t count : counts_to_try(schedule, slots.bytes, random)) {
    const ReduceOp op = all_reduce_ops()[random() % reduce_op_count];
    const auto plan = Plan::make(proven, {schedule.collective, count, DataType::int32, op, root}, slots.bytes, random() % 2 == 0 ? 4 : 64);
    if (!plan) return plan.error().what;
    for (const bool in_place : {false, true}) {
      if (in_place && schedule.collective == Collective::all_to_all) continue;
      const Carried carried = random() % 2 == 0 ? Carried::posted : Carried::buffered;
      std::string wrong = result<int32_t>(*plan, slots, in_place, carried, static_cast<uint32_t>(random()));
      if (!wrong.empty()) return wrong;
    }
  }
  return {};
}

/// Floats within a bound, and the same bits whatever the interleaving, the connections and the place.
std::string floats(const std::shared_ptr<const Proven>& proven, Rank root, const transport::Slots& slots, std::mt19937& random) {
  const auto& schedule = proven->schedule;
  const ReduceOp op = random() % 2 == 0 ? ReduceOp::sum : ReduceOp::avg;
  const auto plan = Plan::make(proven, {schedule.collective, 1 + random() % 3000, DataType::float32, op, root}, slots.bytes);
  if (!plan) return plan.error().what;
  std::string first;
  for (int run = 0; run < 3; ++run) {
    std::string bits;
    const bool in_place = run == 1 && schedule.collective != Collective::all_to_all;
    const Carried carried = run == 2 ? Carried::posted : Carried::buffered;
    std::string wrong = result<float>(*plan, slots, in_place, carried, static_cast<uint32_t>(random()), &bits);
    if (!wrong.empty()) return wrong;
    if (run == 0) first = bits;
    if (bits != first) return plan->text() + ": not the same bits in two runs";
  }
  return {};
}

/// A family's own choice, and grids of two extents.
std::vector<std::vector<int>> grids(int ranks) {
  std::vector<std::vector<int>> all{{}};
  for (int extent = 2; extent < ranks; ++extent) {
    if (ranks % extent == 0) all.push_back({extent, ranks / extent});
  }
  return all;
}

/// All of few roots, some of many.
std::vector<Rank> roots(Collective collective, int ranks) {
  if (!rooted(collective)) return {0};
  if (ranks > 6) return {0, ranks / 2, ranks - 1};
  std::vector<Rank> all(static_cast<size_t>(ranks));
  std::iota(all.begin(), all.end(), 0);
  return all;
}

std::string shape_disagrees(const topo::Family& family, topo::Shape shape, std::mt19937& random) {
  for (const uint32_t channels : {1U, 2U, 3U}) {
    if (shape.ranks > 6 && channels == 2) continue;
    for (const Rank root : roots(shape.collective, shape.ranks)) {
      shape.channels = channels;
      shape.root = root;
      if (!topo::refusal(family, shape).empty()) continue;
      const transport::Slots slots{2 + static_cast<uint32_t>(random() % 7), 4096};
      const auto proven = prove(family.name, shape, slots);
      if (!proven) return proven.error().what;
      std::string wrong = integers(*proven, root, slots, random);
      if (wrong.empty()) wrong = floats(*proven, root, slots, random);
      if (!wrong.empty()) return wrong;
    }
  }
  return {};
}

/// What is wrong with a family's schedules for one collective.
std::string family_disagrees(const topo::Family& family, Collective collective, int ranks) {
  std::mt19937 random(static_cast<uint32_t>(ranks) * 100 + static_cast<uint32_t>(collective));
  for (const auto& grid : grids(ranks)) {
    std::string wrong = shape_disagrees(family, {collective, ranks, 1, 0, grid}, random);
    if (!wrong.empty()) return wrong;
  }
  return {};
}

}  // namespace

TEST_CASE("every schedule of every family agrees with the definition of its collective, under random interleavings", "[long]") {
  for (const topo::Family& family : topo::families()) {
    for (const Collective collective : all_collectives()) {
      for (const int ranks : {1, 2, 3, 4, 5, 6, 7, 8, 9, 12}) {
        if (test::sanitized && ranks != 3 && ranks != 4) continue;
        INFO(family.name << ", " << name(collective) << ", " << ranks << " ranks");
        CHECK(family_disagrees(family, collective, ranks) == "");
      }
    }
  }
}
