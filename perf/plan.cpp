#include "perf/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

#include "base/text.h"
#include "engine/plan.h"
#include "perf/commands.h"
#include "perf/machine.h"
#include "schedule/fuse.h"
#include "schedule/graphviz.h"
#include "schedule/print.h"
#include "schedule/time_axis.h"
#include "schedule/timeline.h"
#include "topo/algorithms.h"

namespace gyre::perf {
namespace {

std::string counted(size_t number, std::string_view noun) { return fmt::format("{} {}{}", number, noun, number == 1 ? "" : "s"); }

std::string bytes_text(size_t bytes) {
  for (const auto& [shift, unit] : {std::pair{30, "GiB"}, {20, "MiB"}, {10, "KiB"}}) {
    if (bytes >= size_t{1} << shift)
      return fmt::format("{:.4g} {}", static_cast<double>(bytes) / static_cast<double>(size_t{1} << shift), unit);
  }
  return counted(bytes, "byte");
}

// The nodes are a grid for the families that need one to know them.
Result<schedule::Schedule> build(PlanCommand& command) {
  topo::Shape& shape = command.shape;
  if (command.nodes < 1 || shape.ranks % command.nodes != 0) {
    return Error{Code::invalid_argument, fmt::format("--nodes {}: {} cannot be spread evenly over them", command.nodes,
                                                     counted(static_cast<size_t>(shape.ranks), "rank"))};
  }
  const topo::Family* family = topo::family_named(command.family);
  if (family != nullptr && shape.grid.empty() && command.nodes > 1 && topo::lacks_nodes(*family, shape)) {
    shape.grid = {shape.ranks / command.nodes, command.nodes};
  }
  schedule::Schedule made = GYRE_TRY(topo::make(command.family, shape));
  return command.unfused ? std::move(made) : schedule::fuse(std::move(made));
}

struct Played {
  topo::Graph graph;
  schedule::Network network;
  schedule::Simulation simulation;
  uint32_t hops = 0;
};
Result<Played> play(const PlanCommand& command, const schedule::Schedule& made) {
  Played out;
  out.graph = example_machine(command.nodes, command.shape.ranks / command.nodes);
  out.network = GYRE_TRY(topo::network(out.graph));
  schedule::Trial trial;
  const schedule::Layout layout = made.layout();
  trial.block_bytes = static_cast<double>(command.bytes) / std::max(layout.input_blocks(), layout.output_blocks());
  trial.conditions.slices = command.slices;
  trial.conditions.credits = 2 * command.slices;
  out.simulation = GYRE_TRY(schedule::simulate(made, out.network, trial));
  out.hops = GYRE_TRY(schedule::hops(made));
  return out;
}

std::string simulated(const PlanCommand& command, const Played& played) {
  const std::string slices = command.slices == 1 ? "" : fmt::format(" in {} slices a chunk", command.slices);
  return fmt::format("{}{} in {}, {}, on {}", bytes_text(command.bytes), slices, schedule::time_text(played.simulation.finish),
                     counted(played.hops, "hop"), text(played.graph));
}

std::string table_of(const PlanCommand& command, const schedule::Schedule& made, const Played& played, const engine::Proven& proven,
                     const transport::Slots& slots) {
  std::string collective(name(made.collective));
  std::replace(collective.begin(), collective.end(), '_', '-');
  std::string out = fmt::format("{} {}, {}, {}, {}{}\n", made.family, collective, counted(static_cast<size_t>(made.ranks), "rank"),
                                counted(command.shape.channels, "channel"), counted(made.chunks, "chunk"),
                                rooted(made.collective) ? fmt::format(", root {}", made.root) : "");
  out += "s send, c copy, r receive, rr receive and reduce; <from >to in[chunk] =out[chunk]\n\n" + schedule::print(made);
  out += fmt::format(
      "\nverified: every output chunk has each rank's part once, in one association on all ranks; no deadlock with {} slots\n"
      "per connection and {}; {}, buffered, posted and mapped\n",
      slots.credits, counted(proven.slices, "slice"), made.layout().has_in_place() ? "in place and out of place" : "out of place");
  return out + "simulated: " + simulated(command, played) + "\n";
}

// What prove() leaves out, since no transport of this host maps memory yet.
Status prove_mapped(const schedule::Schedule& made, const PlanCommand& command, const engine::Proven& proven,
                    const transport::Slots& slots) {
  const schedule::Schedule staged = command.unfused ? made : schedule::fuse(GYRE_TRY(topo::make(command.family, command.shape)), true);
  schedule::Verifier verifier(staged);
  for (const bool in_place : {false, true}) {
    if (in_place && !made.layout().has_in_place()) continue;
    GYRE_TRY(verifier.run({slots.credits, proven.slices, schedule::Mode::mapped, in_place}));
  }
  return {};
}

Status write(const std::string& text, const std::string& file) {
  if (file.empty()) {
    fmt::print("{}", text);
    return {};
  }
  std::FILE* out = std::fopen(file.c_str(), "w");
  const bool written = out != nullptr && std::fwrite(text.data(), 1, text.size(), out) == text.size();
  const bool closed = out != nullptr && std::fclose(out) == 0;
  if (written && closed) return {};
  return Error{Code::invalid_argument, fmt::format("-o {}: cannot be written", file)};
}

Result<std::string> drawn(PlanCommand& command, const Config& config) {
  const schedule::Schedule made = GYRE_TRY(build(command));
  const transport::Slots slots{static_cast<uint32_t>(*config.slots), *config.slot_bytes};
  const auto proven = GYRE_TRY(engine::prove(made, slots));
  GYRE_TRY(prove_mapped(made, command, *proven, slots));
  const Played played = GYRE_TRY(play(command, made));
  if (command.format == "dot") return schedule::graphviz(made, played.network.node_of);
  if (command.format == "table") return table_of(command, made, played, *proven, slots);
  return schedule::timeline(made, played.network, played.simulation,
                            {fmt::format("{} {}", made.family, topo::text(command.shape)), simulated(command, played)});
}

}  // namespace

int plan(PlanCommand command, const Config& config) {
  const auto text = drawn(command, config);
  if (!text) return complain(text.error());
  const Status written = write(*text, command.file);
  return written ? 0 : complain(written.error());
}

}  // namespace gyre::perf
