#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "base/processor.h"
#include "base/version.h"
#include "perf/about_run.h"
#include "perf/commands.h"
#include "perf/nccl_beside.h"
#include "perf/nccl_forced.h"
#include "perf/nccl_trial.h"
#include "perf/profile.h"
#include "topo/nccl/model.h"

namespace gyre::perf {
namespace {

using nlohmann::ordered_json;

/// Those whose benchmark, such as all_reduce_perf, is among a command's words, or among those of a word for a shell; gyre-perf's are words
/// behind it.
std::set<Collective> benchmarked(const std::vector<std::string>& command) {
  std::set<Collective> found;
  const std::string line = fmt::format("{}", fmt::join(command, " "));
  bool gyres = false;
  for (size_t begin = 0; begin < line.size();) {
    const size_t end = std::min(line.find_first_of(" \t\n;", begin), line.size());
    const std::string word = line.substr(begin, end - begin);
    const std::string program = word.substr(word.find_last_of('/') + 1);  // npos and 1 are 0
    const bool set = word.find('=') != word.npos;                         // a variable, or an option
    for (const Collective collective : all_collectives())
      if ((gyres && word == name(collective)) || (!set && program.starts_with(fmt::format("{}_perf", name(collective)))))
        found.insert(collective);
    if (!word.empty()) gyres = program == "gyre-perf";
    begin = end + 1;
  }
  return found;
}

Result<Collective> collective_of(const TuneNcclCommand& command) {
  const auto& known = topo::nccl::collectives;
  const auto is_known = [&](Collective each) { return std::ranges::find(known, each) != known.end(); };
  std::vector<std::string_view> names(known.size());
  std::ranges::transform(known, names.begin(), [](Collective each) { return name(each); });
  std::set<Collective> found = benchmarked(command.words);
  if (const auto& said = command.collective) {
    if (!is_known(*said))
      return Error{Code::invalid_argument,
                   fmt::format("--collective {}: NCCL asks a tuner only for {}", name(*said), fmt::join(names, ", "))};
    if (found.size() == 1 && !found.contains(*said))
      return Error{Code::invalid_argument, fmt::format("--collective {}: the command runs {}", name(*said), name(*found.begin()))};
    return *said;
  }
  std::erase_if(found, [&](Collective each) { return !is_known(each); });
  if (found.size() == 1) return *found.begin();
  return Error{Code::invalid_argument, fmt::format("the command names {} of {}, with _perf behind it: --collective says which it runs",
                                                   found.empty() ? "none" : "more than one", fmt::join(names, ", "))};
}

/// Nothing was measured where it is 0.
std::string or_none(double value, int digits) { return value > 0 ? fmt::format("{:.{}f}", value, digits) : "-"; }

std::string choice_in_words(const SizeChoice& size) {
  const bool own = size.chosen == nccls_own;
  if (size.gyre_beside) return own ? std::string(gyre_beside) : fmt::format("{}, else {}", gyre_beside, size.chosen);
  return own ? "NCCL's own" : size.chosen;
}

/// A column of gyre's, where it was measured at all.
void print_sizes(const std::vector<SizeChoice>& sizes) {
  const bool gyres = std::ranges::any_of(sizes, [](const SizeChoice& size) { return size.gyre_us > 0; });
  const auto column = [&](std::string_view cell) { return gyres ? fmt::format("{:>11}  ", cell) : ""; };
  fmt::print("#\n# {:>12}  {:>13}  {:>10}  {:<22}  {:>11}  {:>6}  {}{}\n", "size", "NCCL's own", "spread", "best forced", "its time",
             "ratio", column("gyre"), "choice");
  fmt::print("# {:>12}  {:>13}  {:>10}  {:<22}  {:>11}{}\n", "(B)", "(us)", "(us)", "", "(us)",
             gyres ? fmt::format("  {:>6}  {:>11}", "", "(us)") : "");
  for (const SizeChoice& size : sizes)
    fmt::print("  {:>12}  {:>13.2f}  {:>10.2f}  {:<22}  {:>11}  {:>6}  {}{}\n", size.bytes, size.own_us, size.own_spread,
               size.best.empty() ? "-" : size.best, or_none(size.best_us, 2), or_none(size.best_us / size.own_us, 3),
               column(or_none(size.gyre_us, 2)), choice_in_words(size));
}

/// Where ranks find it, whatever folder they are in.
Result<std::string> library_of(const TuneNcclCommand& command) {
  if (command.library.empty()) return std::string();
  std::error_code unknown;
  if (!std::filesystem::is_regular_file(command.library, unknown))
    return Error{Code::invalid_argument, fmt::format("--library {}: is no file", command.library)};
  std::string path = std::filesystem::absolute(command.library, unknown).string();
  if (path.find_first_of(": ") != path.npos)
    return Error{Code::invalid_argument, fmt::format("--library {}: LD_PRELOAD takes no path with a colon or a space", path)};
  return path;
}

ordered_json new_section(const std::string& machine, const std::string& date) {
  return {{"machine", machine}, {"version", profile_version}, {"date", date}, {"origin", measured_origin}, {"jobs", ordered_json::array()}};
}

ordered_json listed(const Thresholds& thresholds) {
  ordered_json choices = ordered_json::array();
  for (const Threshold& each : thresholds) {
    ordered_json& choice = choices.emplace_back(ordered_json::array({each.from}));
    if (each.gyre_beside) choice.push_back(gyre_beside);
    if (!each.gyre_beside || each.chosen != nccls_own) choice.push_back(each.chosen);
  }
  return choices;
}

/// Medians by size, for people: {"1024": {"nccl": 12, "tree/ll": 8}}.
ordered_json medians_of(const std::vector<SizeChoice>& sizes) {
  ordered_json all = ordered_json::object();
  for (const SizeChoice& size : sizes) {
    ordered_json& us = all[std::to_string(size.bytes)];
    us[std::string(nccls_own)] = size.own_us;
    if (!size.best.empty()) us[size.best] = size.best_us;
    if (size.gyre_us > 0) us[std::string(gyre_beside)] = size.gyre_us;
  }
  return all;
}

Status put_into_profile(const TuneNcclCommand& command, Collective collective, const std::vector<SizeChoice>& sizes,
                        const ordered_json& choices, const NcclTimes& times) {
  const std::string machine = times.device.empty() ? processors_of_host().model : times.device;
  const std::string date = date_now();
  const ordered_json how{{"machine", machine},     {"nccl", times.version},           {"gyre", version},
                         {"date", date},           {"command", command.command_line}, {"rounds", times.rounds},
                         {"us", medians_of(sizes)}};
  return change_profile(command.profile, [&](ordered_json& profile) -> Status {
    ordered_json section = GYRE_TRY(nccl_section(profile, command.profile)).json;
    if (section.is_null()) section = new_section(machine, date);
    put_measured(section, {command.ranks_per_node, command.nodes, std::string(name(collective)), choices, how});
    profile["nccl"] = std::move(section);
    return {};
  });
}

Status measure_choices(const TuneNcclCommand& command) {
  const Collective collective = GYRE_TRY(collective_of(command));
  GYRE_TRY(check_env(command.words));
  const std::string library = GYRE_TRY(library_of(command));
  if (const Status place = check_profile(command.profile); !place)  // or hours are measured in vain
    return Error{Code::invalid_argument, fmt::format("--profile {}", place.error().what)};
  const auto profile = GYRE_TRY(read_profile(command.profile));
  const NcclSection before = GYRE_TRY(nccl_section(profile, command.profile));
  if (!before.said.empty()) fmt::print("# {}\n", before.said);
  const NcclTimes times = GYRE_TRY(time_nccl({collective, command.ranks_per_node, command.nodes, command.rounds,
                                              std::chrono::seconds(command.timeout_s), command.words, library}));
  const std::vector<SizeChoice> sizes = choose_by_times(times.us);
  print_sizes(sizes);
  const ordered_json choices = listed(thresholds_of(sizes));
  if (Status put = put_into_profile(command, collective, sizes, choices, times); !put) {
    fmt::print("#\n# \"choices\": {{\"{}\": {}}} would have been written\n", name(collective), choices.dump());
    return put;
  }
  fmt::print("#\n# NCCL's tuner chooses by it with GYRE_TUNER_FILE={}, in jobs of {} ranks on each of {} node{}\n", command.profile,
             command.ranks_per_node, command.nodes, command.nodes == 1 ? "" : "s");
  if (std::ranges::any_of(sizes, &SizeChoice::gyre_beside))
    fmt::print("# and gyre takes its own choices over with LD_PRELOAD={} beside that\n", library);
  return {};
}

}  // namespace

int tune_nccl(const TuneNcclCommand& command) {
  const Status status = measure_choices(command);
  return status ? 0 : complain(status.error());
}

}  // namespace gyre::perf
