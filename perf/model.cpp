#include "perf/model.h"

#include <fmt/format.h>

#include "topo/constants.h"
#include "topo/select.h"

namespace gyre::perf {
namespace {

using topo::Candidate;
using topo::Choice;
using topo::Query;

Result<topo::Costs> machine_costs(const ModelCommand& command) {
  const topo::Constants constants = GYRE_TRY(topo::constants_of(command.constants));
  return constants.machine(command.machine);
}

Result<Query> query(const ModelCommand& command, const Config& config) {
  if (command.ranks % command.nodes != 0) {
    return Error{Code::invalid_argument,
                 fmt::format("--nodes {}: {} ranks can't be spread over them evenly", command.nodes, command.ranks)};
  }
  if (command.root < 0 || command.root >= command.ranks) {
    return Error{Code::invalid_argument, fmt::format("--root {} of {} ranks", command.root, command.ranks)};
  }
  Query out;
  out.collective = command.collective;
  out.element_bytes = sizeof(float);  // the type that sweeps have, unless told
  out.ranks = command.ranks;
  out.root = rooted(command.collective) ? command.root : 0;
  out.placement = {command.nodes == 1 ? 0 : command.ranks / command.nodes};
  out.channels = command.channels;
  out.costs = GYRE_TRY(machine_costs(command));
  out.cutting.slot_bytes = *config.slot_bytes;
  out.cutting.credits = static_cast<uint32_t>(*config.slots);
  out.cutting.slices = schedule::slices_under_way(out.cutting.credits);
  return out;
}

// The cheapest of another family.
const Candidate* runner_up(const Choice& choice) {
  for (const Candidate& candidate : choice.candidates) {
    if (candidate.refused.empty() && candidate.family != choice.best()->family) return &candidate;
  }
  return nullptr;
}

void print_row(size_t bytes, const Choice& choice) {
  const Candidate& best = *choice.best();
  const Candidate* second = runner_up(choice);
  const auto share = [&](double part) { return best.price.seconds > 0 ? 100 * part / best.price.seconds : 0; };
  fmt::print("{:>12} {:<30} {:>12.2f} {:>7.0f}% {:>6.0f}% {:>7.0f}% {:>9.0f}%  {}\n", bytes, named(best), topo::predicted(best) * 1e6,
             share(best.price.latency), share(best.price.bytes[topo::inside]), share(best.price.bytes[topo::between]),
             share(best.price.computing),
             second == nullptr ? "" : fmt::format("{} x{:.2f}", named(*second), topo::predicted(*second) / topo::predicted(best)));
}

}  // namespace

double block_bytes(const Query& query, size_t bytes) {
  const schedule::Layout layout{query.collective, query.ranks, query.root, 1};
  return static_cast<double>(bytes) / std::max(layout.input_blocks(), layout.output_blocks());
}

std::string named(const Candidate& candidate) {
  std::string out(candidate.family);
  if (!candidate.shape.grid.empty()) out += fmt::format(" {}", fmt::join(candidate.shape.grid, "x"));
  if (candidate.shape.channels != 1) out += fmt::format(" c{}", candidate.shape.channels);
  return out;
}

int model(const ModelCommand& command, const Config& config) {
  auto asked = query(command, config);
  if (!asked) return complain(asked.error());
  topo::Profiles profiles;
  if (command.explain_bytes) {
    asked->block_bytes = block_bytes(*asked, *command.explain_bytes);
    fmt::print("{}", topo::explain(*asked, topo::choose(*asked, profiles)));
    return 0;
  }
  if (command.max_bytes > size_t{1} << 43) {
    return complain({Code::invalid_argument, fmt::format("-e {}: more than 8 TiB", command.max_bytes)});
  }
  if (command.min_bytes == 0 || command.min_bytes > command.max_bytes || command.step_factor < 2) {
    return complain({Code::invalid_argument, fmt::format("-b {} -e {} -f {}: sizes go from 1 or more up, by a factor of 2 or more",
                                                         command.min_bytes, command.max_bytes, command.step_factor)});
  }
  fmt::print("# {} for {} ranks on {} node{}, costs of {}: which algorithm is predicted to win, and where its time goes\n",
             name(command.collective), command.ranks, command.nodes, command.nodes == 1 ? "" : "s", command.machine);
  fmt::print("# links inside a node: {}, between nodes: {}; slots of {} bytes, {} slices under way\n", asked->costs.link[topo::inside].name,
             asked->costs.link[topo::between].name, asked->cutting.slot_bytes, asked->cutting.slices);
  if (command.simulate) {
    const Status done = simulate_choices(command, *asked);
    return done ? 0 : complain(done.error());
  }
  fmt::print("{:>12} {:<30} {:>12} {:>8} {:>7} {:>8} {:>10}  {}\n", "# size (B)", "algorithm", "time (us)", "latency", "inside", "between",
             "computing", "runner-up");
  for (size_t bytes = command.min_bytes;; bytes *= command.step_factor) {
    asked->block_bytes = block_bytes(*asked, bytes);
    const Choice choice = topo::choose(*asked, profiles);
    if (choice.best() == nullptr) return complain({Code::invalid_argument, "no algorithm can run:\n" + topo::explain(*asked, choice)});
    print_row(bytes, choice);
    if (bytes > command.max_bytes / command.step_factor) break;
  }
  return 0;
}

}  // namespace gyre::perf
