#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "base/file.h"
#include "perf/about_run.h"
#include "perf/commands.h"
#include "perf/nccl_choices.h"
#include "perf/profile.h"
#include "topo/nccl/crossovers.h"
#include "topo/nccl/published.h"

namespace gyre::perf {
namespace {

namespace nccl = topo::nccl;
using nccl::Algorithm;
using nccl::Entry;
using nccl::Protocol;
using nlohmann::ordered_json;

/// The same call by both predictions.
struct Predictions {
  nccl::Seconds gyre, published;
};

Predictions for_collective(const nccl::Model& model, const nccl::PublishedModel& published, Collective collective) {
  return {[&model, collective](const Entry& entry, uint64_t bytes) { return model.seconds(collective, entry, bytes); },
          [&published, collective](const Entry& entry, uint64_t bytes) { return published.seconds(collective, entry, bytes); }};
}

// Every size at which one of both changes; how much longer NCCL's choice takes than gyre's, as gyre predicts.
void print_changes(Collective collective, const Predictions& by) {
  const auto ours = nccl::changes(by.gyre);
  const auto theirs = nccl::changes(by.published);
  for (size_t i = 0, k = 0; i < ours.size() || k < theirs.size();) {
    const uint64_t end = std::numeric_limits<uint64_t>::max();
    const uint64_t from = std::min(i < ours.size() ? ours[i].from : end, k < theirs.size() ? theirs[k].from : end);
    if (i < ours.size() && ours[i].from == from) ++i;
    if (k < theirs.size() && theirs[k].from == from) ++k;
    const Entry& own = ours[i - 1].best;
    const Entry& its = theirs[k - 1].best;
    fmt::print("  {:<14}  {:>12}  {:<12}  {:<12}  {:>6.2f}\n", name(collective), from, text(own), text(its),
               *by.gyre(its, from) / *by.gyre(own, from));
  }
}

std::string shown(const std::optional<uint64_t>& size) {
  if (!size) return "never";
  return *size == nccl::Sizes{}.least ? "always" : fmt::to_string(*size);
}

void print_pair(const Predictions& by, const Entry& first, const Entry& second) {
  if (!by.gyre(first, 1) || !by.gyre(second, 1)) return;
  fmt::print("  {:<12}  {:<12}  {:>12}  {:>12}\n", text(first), text(second), shown(nccl::crossover(by.gyre, first, second)),
             shown(nccl::crossover(by.published, first, second)));
}

void print_pairs(const Predictions& by) {
  constexpr std::array<std::pair<Protocol, Protocol>, 3> pairs{
      {{Protocol::ll, Protocol::ll128}, {Protocol::ll, Protocol::simple}, {Protocol::ll128, Protocol::simple}}};
  for (const Algorithm algorithm : {Algorithm::tree, Algorithm::ring})
    for (const auto& [first, second] : pairs) print_pair(by, {algorithm, first}, {algorithm, second});
  for (const Protocol protocol : {Protocol::ll, Protocol::ll128, Protocol::simple})
    print_pair(by, {Algorithm::tree, protocol}, {Algorithm::ring, protocol});
}

Status put_into_profile(const CrossoversCommand& command, const nccl::ModelConstants& constants, const nccl::Machine& machine,
                        const nccl::Job& job) {
  const std::string date = date_now();
  ordered_json section = GYRE_TRY(tuner_section(constants, machine, job, {command.machine, date, command.command_line}));
  return change_profile(command.profile, [&](ordered_json& profile) -> Status {
    const NcclSection before = GYRE_TRY(nccl_section(profile, command.profile));
    if (!before.said.empty()) fmt::print("# {}\n", before.said);
    keep_jobs(before.json, section, job.ranks / job.nodes);
    profile["nccl"] = std::move(section);
    return {};
  });
}

Status show(const CrossoversCommand& command) {
  const nccl::ModelConstants constants = GYRE_TRY(nccl::model_constants_of(command.constants));
  const nccl::Machine machine = GYRE_TRY(constants.machine(command.machine));
  const nccl::Job job{command.ranks.value_or(machine.gpus * command.nodes), command.nodes};
  constexpr int most = 1 << 17;  // of which the trees take half a gigabyte
  if (job.ranks > most) return Error{Code::invalid_argument, fmt::format("{} ranks, must be {} at most", job.ranks, most)};
  if (job.ranks > machine.gpus * job.nodes)
    return Error{Code::invalid_argument, fmt::format("--ranks {} on --nodes {} of {}, which have {} GPUs", job.ranks, job.nodes,
                                                     command.machine, machine.gpus * job.nodes)};
  if (job.ranks < 2) return Error{Code::invalid_argument, "a collective of one rank has no crossovers"};
  const nccl::Model model = GYRE_TRY(nccl::Model::of(constants, machine, job));
  const nccl::PublishedModel published(constants.published, machine, job);
  if (!command.rules.empty()) GYRE_TRY(write_file("--rules", command.rules, tuner_rules(model, job)));
  if (!command.profile.empty()) GYRE_TRY(put_into_profile(command, constants, machine, job));
  fmt::print(
      "# {} ranks on {} node{} of {}: the best of NCCL's rings and trees by gyre's prices, and by NCCL {}'s own defaults as published\n",
      job.ranks, job.nodes, job.nodes == 1 ? "" : "s", command.machine, constants.published.release);
  fmt::print("# predicted, not measured on GPUs; NVLink SHARP, CollNet and PAT are left out\n#\n");
  fmt::print("# {:<14}  {:>12}  {:<12}  {:<12}  {}\n", "collective", "from (B)", "gyre", "NCCL", "NCCL's takes, by gyre");
  for (const Collective collective : nccl::collectives) print_changes(collective, for_collective(model, published, collective));
  fmt::print("#\n# an all-reduce is faster by the second than by the first from\n# {:<12}  {:<12}  {:>12}  {:>12}\n", "first", "second",
             "gyre (B)", "NCCL (B)");
  print_pairs(for_collective(model, published, Collective::all_reduce));
  return {};
}

}  // namespace

int crossovers(const CrossoversCommand& command) {
  const Status status = show(command);
  return status ? 0 : complain(status.error());
}

}  // namespace gyre::perf
