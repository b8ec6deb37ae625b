#include "perf/nccl_choices.h"

#include <fmt/format.h>

#include <limits>
#include <utility>
#include <vector>

#include "base/version.h"
#include "topo/nccl/crossovers.h"

namespace gyre::perf {
namespace {

namespace nccl = topo::nccl;
using nlohmann::ordered_json;

/// Of each collective every size from which on another is best; the first is 0.
std::vector<std::pair<Collective, std::vector<nccl::Change>>> choices(const nccl::Model& model) {
  std::vector<std::pair<Collective, std::vector<nccl::Change>>> out;
  for (const Collective collective : nccl::collectives) {
    auto changes = nccl::changes([&](const nccl::Entry& entry, uint64_t bytes) { return model.seconds(collective, entry, bytes); });
    changes.at(0).from = 0;  // there are rings for all
    out.emplace_back(collective, std::move(changes));
  }
  return out;
}

ordered_json job_entry(const nccl::Model& model, int ranks_per_node, int nodes) {
  ordered_json by_collective = ordered_json::object();
  for (const auto& [collective, changes] : choices(model)) {
    ordered_json& list = by_collective[std::string(name(collective))] = ordered_json::array();
    for (const nccl::Change& change : changes) list.push_back(ordered_json::array({change.from, text(change.best)}));
  }
  return {{"ranks_per_node", ranks_per_node}, {"nodes", nodes}, {"choices", by_collective}};
}

std::vector<int> powers_of_two_and(int last) {
  std::vector<int> out;
  for (int power = 1; power < last; power *= 2) out.push_back(power);
  out.push_back(last);
  return out;
}

}  // namespace

std::string tuner_rules(const nccl::Model& model, const nccl::Job& job) {
  constexpr std::array<std::string_view, 5> names{"allreduce", "reducescatter", "allgather", "broadcast", "reduce"};
  std::string text = "# collective, bytes from and to, algorithm, protocol, channels, nodes, ranks; by gyre-perf crossovers, predicted\n";
  const auto all = choices(model);
  for (size_t c = 0; c < all.size(); ++c) {
    const auto& changes = all[c].second;
    for (size_t i = 0; i < changes.size(); ++i) {
      const uint64_t to = i + 1 < changes.size() ? changes[i + 1].from - 1 : uint64_t{std::numeric_limits<int64_t>::max()};
      text += fmt::format("{},{},{},{},{},-1,{},{}\n", names.at(c), changes[i].from, to, name(changes[i].best.algorithm),
                          name(changes[i].best.protocol), job.nodes, job.ranks);
    }
  }
  return text;
}

Result<ordered_json> tuner_section(const nccl::ModelConstants& constants, const nccl::Machine& machine, const nccl::Job& job,
                                   const ChoicesOrigin& from) {
  const int per_node = job.ranks / job.nodes;
  ordered_json jobs = ordered_json::array();
  for (const int nodes : powers_of_two_and(job.nodes)) {
    if (per_node * nodes < 2) continue;  // nothing is chosen for one rank
    const nccl::Model model = GYRE_TRY(nccl::Model::of(constants, machine, {per_node * nodes, nodes}));
    jobs.push_back(job_entry(model, per_node, nodes));
  }
  return ordered_json{{"machine", from.machine},
                      {"version", profile_version},
                      {"date", from.date},
                      {"origin", fmt::format("{}: rings and trees as gyre prices them, predicted, not measured on GPUs", from.command)},
                      {"jobs", jobs}};
}

}  // namespace gyre::perf
