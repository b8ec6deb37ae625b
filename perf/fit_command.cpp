#include <fmt/chrono.h>
#include <fmt/format.h>

#include <map>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "base/processor.h"
#include "base/version.h"
#include "perf/about_run.h"
#include "perf/commands.h"
#include "perf/fit.h"
#include "perf/profile.h"
#include "topo/constants.h"

namespace gyre::perf {
namespace {

using nlohmann::ordered_json;

// Three digits say all that is known; what is next to nothing is nothing.
double rounded(double value) { return value < 1e-6 ? 0 : std::stod(fmt::format("{:.3g}", value)); }

// Puts a machine's own link and rank into the file.
void put(ordered_json& file, const std::string& machine, const topo::Costs& costs, const ordered_json& origin) {
  const auto& link = costs.link[topo::inside];
  file["links"][machine] = {{"alpha_us", rounded(link.alpha * 1e6)},
                            {"beta_ns_per_byte", rounded(link.beta * 1e9)},
                            {"overhead_us", rounded(link.overhead * 1e6)},
                            {"by_processor", link.by_processor},
                            {"origin", origin}};
  file["ranks"][machine] = {{"gamma_ns_per_byte", rounded(costs.rank.gamma * 1e9)},
                            {"copy_ns_per_byte", rounded(costs.rank.copy * 1e9)},
                            {"step_us", rounded(costs.rank.step * 1e6)},
                            {"origin", origin}};
  file["machines"][machine]["local"] = machine;
  file["machines"][machine]["rank"] = machine;
}

/// The middle of each time, by collective, number of ranks and algorithm, at those sizes that all of its algorithms have.
ordered_json measured(const std::vector<Sample>& samples) {
  std::map<std::pair<Collective, int>, std::map<size_t, std::map<std::pair<std::string, std::vector<int>>, double>>> times;
  for (const Sample& s : samples) times[{s.collective, s.ranks}][s.block_bytes()][{s.family, s.grid}] = s.median_us();
  ordered_json all = ordered_json::array();
  for (auto& [call, sizes] : times) {
    size_t most = 0;
    for (const auto& [bytes, algorithms] : sizes) most = std::max(most, algorithms.size());
    std::erase_if(sizes, [&](const auto& size) { return size.second.size() < most; });
    ordered_json of{{"collective", name(call.first)}, {"ranks", call.second}};
    for (const auto& [bytes, algorithms] : sizes) of["bytes"].push_back(bytes);
    for (const auto& [algorithm, ignored] : sizes.begin()->second) {
      ordered_json us;
      for (const auto& [bytes, algorithms] : sizes) us.push_back(rounded(algorithms.at(algorithm)));
      of["times"].push_back({{"algorithm", algorithm.first}, {"grid", algorithm.second}, {"us", us}});
    }
    all.push_back(of);
  }
  return all;
}

struct Errors {
  double priced = 0;
  double simulated = 0;
};

Result<Errors> errors(const std::vector<Sample>& samples, const topo::Costs& costs) {
  topo::Profiles profiles;
  std::vector<double> priced;
  std::vector<double> simulated;
  for (const Sample& s : samples) {
    priced.push_back(GYRE_TRY(priced_us(s, costs, profiles)));
    simulated.push_back(GYRE_TRY(simulated_us(s, costs)));
  }
  return Errors{median_error(priced, samples), median_error(simulated, samples)};
}

Status run(const FitCommand& command) {
  GYRE_TRY(read_profile(command.file));  // a part of it is kept
  const auto samples = GYRE_TRY(read_samples(command.samples));
  const topo::Constants known = GYRE_TRY(topo::default_constants());
  ordered_json file = ordered_json::parse(GYRE_TRY(topo::constants_text("")));
  std::map<std::string, std::vector<Sample>> machines;
  for (const Sample& s : samples) machines[machine_of(s)].push_back(s);
  fmt::print("{:<18} {:>8} {:>13} {:>16}\n", "machine", "samples", "price's error", "simulator's error");
  for (const auto& [machine, its] : machines) {
    const topo::Costs start = GYRE_TRY(known.machine(machine));
    const topo::Costs costs = GYRE_TRY(fit(its, start));
    const Errors e = GYRE_TRY(errors(its, costs));
    fmt::print("{:<18} {:>8} {:>12.1f}% {:>15.1f}%\n", machine, its.size(), 100 * e.priced, 100 * e.simulated);
    const ordered_json origin{{"machine", processors_of_host().model},
                              {"date", date_now()},
                              {"command", command.command_line},
                              {"note", fmt::format("fitted to {} samples; median error of the price {:.1f} %, of the simulator {:.1f} %",
                                                   its.size(), 100 * e.priced, 100 * e.simulated)}};
    put(file, machine, costs, origin);
    if (command.for_this_machine) file["machines"][machine]["measured"] = measured(its);
  }
  if (command.for_this_machine) {
    const Processors here = processors_of_host();
    file["made_for"] = {{"processor", here.model}, {"processors", here.count}, {"gyre", profile_version}};
  }
  return change_profile(command.file, [&](ordered_json& profile) -> Status {
    // What NCCL's tuner chooses by is not what was fitted.
    if (profile.contains("nccl")) file["nccl"] = profile["nccl"];
    profile = std::move(file);
    return {};
  });
}

}  // namespace

int fit(const FitCommand& command, const Config&) {
  const Status status = run(command);
  return status ? 0 : complain(status.error());
}

}  // namespace gyre::perf
