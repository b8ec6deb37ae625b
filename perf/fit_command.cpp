#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <tuple>
#include <utility>

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

// Samples for which the same constants are looked for. Those inside a node come first, since what they give holds between nodes, too.
struct Fitted {
  bool several_nodes = false;
  std::string machine;             // of what is put into the file
  std::string transport, network;  // by which costs_of() tells what is known of them

  explicit Fitted(const Sample& s)
      : several_nodes(s.nodes > 1), machine(network_machine_of(s)), transport(s.transport), network(s.network) {}
  auto operator<=>(const Fitted&) const = default;  // NOLINT(modernize-use-nullptr): clang-tidy 14 takes its 0 for a pointer
  std::string link() const { return several_nodes ? machine + "_between" : machine; }
  std::string in_words() const { return several_nodes ? fmt::format("{} between hosts and {} inside", network, transport) : transport; }
};

ordered_json link_entry(const schedule::LinkClass& link, const ordered_json& origin) {
  return {{"alpha_us", rounded(link.alpha * 1e6)},
          {"beta_ns_per_byte", rounded(link.beta * 1e9)},
          {"overhead_us", rounded(link.overhead * 1e6)},
          {"by_processor", link.by_processor},
          {"origin", origin}};
}

// Puts a machine's own link between nodes into the file, or its link inside one and its rank.
void put(ordered_json& file, const Fitted& fitted, const topo::Costs& costs, const ordered_json& origin) {
  ordered_json& machine = file["machines"][fitted.machine];
  file["links"][fitted.link()] = link_entry(costs.link[fitted.several_nodes ? topo::between : topo::inside], origin);
  if (fitted.several_nodes || machine["network"] == machine["local"]) machine["network"] = fitted.link();  // a link may be both
  if (fitted.several_nodes) return;
  file["ranks"][fitted.machine] = {{"gamma_ns_per_byte", rounded(costs.rank.gamma * 1e9)},
                                   {"copy_ns_per_byte", rounded(costs.rank.copy * 1e9)},
                                   {"step_us", rounded(costs.rank.step * 1e6)},
                                   {"origin", origin}};
  machine["local"] = fitted.machine;
  machine["rank"] = fitted.machine;
}

/// The middle of each time, by collective, number of ranks and of nodes, and algorithm; of the size with the most algorithms, and of those
/// that have just these.
ordered_json measured(const std::vector<Sample>& samples) {
  std::map<std::tuple<Collective, int, int>, std::map<size_t, std::map<std::pair<std::string, std::vector<int>>, double>>> times;
  for (const Sample& s : samples) times[{s.collective, s.ranks, s.nodes}][s.block_bytes()][{s.family, s.grid}] = s.median_us();
  ordered_json all = ordered_json::array();
  for (auto& [call, sizes] : times) {
    const auto most = std::ranges::max_element(sizes, {}, [](const auto& size) { return size.second.size(); })->second;
    const auto same = [](const auto& a, const auto& b) { return a.first == b.first; };
    std::erase_if(sizes, [&](const auto& size) { return !std::ranges::equal(size.second, most, same); });
    const auto& [collective, ranks, nodes] = call;
    ordered_json of{{"collective", name(collective)}, {"ranks", ranks}};
    if (nodes > 1) of["per_node"] = ranks / nodes;
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

/// What new figures are put into, and what is said of it.
struct Begun {
  ordered_json file;
  std::string said;
};

/// Empty: what the profile says things cost was measured here, and stays.
std::string why_not_kept(const ordered_json& profile, const FitCommand& command) {
  if (!command.for_this_machine) return "what was measured here stays only with --for-this-machine";
  const auto before = topo::parse_constants(profile.dump(), command.file);
  if (!before) return before.error().what;
  if (!before->made_for) return "it does not say for which machine it was made";
  return before->made_for->foreign(processors_of_host(), profile_version);
}

/// What a profile says things cost here, for new figures beside it; else the constants compiled in. Says which.
Begun begun(const ordered_json& profile, const FitCommand& command, const std::map<std::string, std::vector<Sample>>& machines) {
  ordered_json anew = ordered_json::parse(*topo::constants_text(""));
  if (!profile.contains("links") && !profile.contains("made_for")) return {std::move(anew), ""};
  const std::string why = why_not_kept(profile, command);
  if (!why.empty()) return {std::move(anew), fmt::format("\n{}: begun anew from the constants compiled in, as {}\n", command.file, why)};
  std::vector<std::string> kept;
  for (const auto& [name, machine] : profile["machines"].items())
    if (machine.contains("measured") && machines.count(name) == 0) kept.push_back(name);
  if (kept.empty()) return {profile, ""};
  return {profile, fmt::format("\n{}: what it has of {} was measured here before, and stays\n", command.file, fmt::join(kept, ", "))};
}

std::string call_in_words(const Sample& s) {
  return fmt::format("{} of {} bytes by {}{} between {} ranks on {} nodes, {} inside each", name(s.collective), s.bytes, s.family,
                     s.grid.empty() ? "" : fmt::format(" {}", fmt::join(s.grid, "x")), s.ranks, s.nodes, s.transport);
}

/// Error: samples of one link, or of one call, though their ranks were joined otherwise.
Status check_apart(const std::vector<Sample>& samples) {
  std::map<std::string, std::string> joined;
  for (const Sample& s : samples) {
    const Fitted fitted(s);
    for (const std::string& of : {fitted.link(), call_in_words(s)}) {
      const std::string& other = joined.try_emplace(of, fitted.in_words()).first->second;
      if (other == fitted.in_words()) continue;
      return Error{Code::invalid_argument,
                   fmt::format("{}: has samples over {}, and over {}; leave out those of one", of, other, fitted.in_words())};
    }
  }
  return {};
}

struct Fit {
  topo::Costs costs;
  ordered_json origin;
};

/// `known`: of what was not measured now.
Result<std::map<Fitted, Fit>> fit_all(const std::vector<Sample>& samples, const std::string& command_line, topo::Constants known) {
  const topo::Constants compiled_in = GYRE_TRY(topo::default_constants());
  std::map<Fitted, std::vector<Sample>> all;
  for (const Sample& s : samples) all[Fitted(s)].push_back(s);
  std::map<Fitted, Fit> made;
  fmt::print("{:<25} {:>8} {:>13} {:>16}\n", "machine", "samples", "price's error", "simulator's error");
  for (const auto& [fitted, its] : all) {
    const topo::Costs typical = GYRE_TRY(costs_of(its.front(), compiled_in));
    topo::Costs start = fitted.several_nodes ? GYRE_TRY(costs_of(its.front(), known)) : typical;
    start.link[topo::between] = typical.link[topo::between];  // what is looked for is found alike, whatever was found before
    const topo::Costs costs = GYRE_TRY(fit(its, start));
    const Errors e = GYRE_TRY(errors(its, costs));
    fmt::print("{:<25} {:>8} {:>12.1f}% {:>15.1f}%\n", fitted.link(), its.size(), 100 * e.priced, 100 * e.simulated);
    made[fitted] = {costs,
                    {{"machine", processors_of_host().model},
                     {"date", date_now()},
                     {"command", command_line},
                     {"note", fmt::format("fitted to {} samples; median error of the price {:.1f} %, of the simulator {:.1f} %", its.size(),
                                          100 * e.priced, 100 * e.simulated)}}};
    if (!fitted.several_nodes) known.machines[fitted.machine] = costs;
  }
  return made;
}

/// The times of calls that were measured now, and those of others that were before.
ordered_json with_those_before(ordered_json now, const ordered_json& machine) {
  const auto call = [](const ordered_json& m) { return std::tuple(m["collective"], m["ranks"], m.value("per_node", m["ranks"])); };
  const auto before = machine.find("measured");
  if (before == machine.end()) return now;
  const ordered_json just_now = now;
  for (const ordered_json& m : *before) {
    const bool again = std::any_of(just_now.begin(), just_now.end(), [&](const ordered_json& n) { return call(n) == call(m); });
    if (!again) now.push_back(m);
  }
  return now;
}

Status run(const FitCommand& command) {
  const ordered_json before = GYRE_TRY(read_profile(command.file));  // a part of it is kept
  const auto samples = GYRE_TRY(read_samples(command.samples));
  GYRE_TRY(check_apart(samples));
  std::map<std::string, std::vector<Sample>> machines;
  for (const Sample& s : samples) machines[network_machine_of(s)].push_back(s);
  topo::Constants known = GYRE_TRY(topo::parse_constants(begun(before, command, machines).file.dump(), command.file));
  const auto made = GYRE_TRY(fit_all(samples, command.command_line, std::move(known)));
  return change_profile(command.file, [&](ordered_json& profile) -> Status {
    auto [file, said] = begun(profile, command, machines);
    fmt::print("{}", said);
    for (const auto& [fitted, fit] : made) put(file, fitted, fit.costs, fit.origin);
    if (command.for_this_machine) {
      for (const auto& [name, its] : machines) {
        ordered_json& machine = file["machines"][name];
        machine["measured"] = with_those_before(measured(its), machine);
      }
      const Processors here = processors_of_host();
      file["made_for"] = {{"processor", here.model}, {"processors", here.count}, {"gyre", profile_version}};
    }
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
