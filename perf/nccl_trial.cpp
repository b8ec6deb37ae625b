#include "perf/nccl_trial.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdio>
#include <functional>
#include <set>
#include <string_view>
#include <utility>

#include "base/text.h"
#include "perf/nccl_beside.h"
#include "perf/nccl_forced.h"
#include "perf/nccl_tests_output.h"

namespace gyre::perf {
namespace {

using Clock = std::chrono::steady_clock;

constexpr Code wrong_results = Code::internal;  // perf/nccl_tests_output.h

// A launcher's last line often says no more than the exit code.
std::string why_failed(const Finished& done) {
  const std::string warning = nccl_warning_in(done.out + "\n" + done.err);
  constexpr size_t most = 300;
  return printable(warning.empty() ? done.last_line() : warning, most);
}

int ranks_of(const NcclTrial& trial) { return trial.ranks_per_node * trial.nodes; }

// That results were wrong is known by the exit code, too, and is a reason of its own.
Result<Finished> run_forced(const NcclTrial& trial, std::string_view choice, bool told) {
  const bool gyres = choice == gyre_beside;
  const Variables variables = gyres ? beside_variables(trial.library, trial.collective, told) : nccl_variables(choice, told);
  Finished done = GYRE_TRY(run_command(with_env(trial.command, variables), variables, {trial.limit}));
  if (done.code == 0 && gyres) {
    const auto times = GYRE_TRY(nccl_tests_times(done.out));
    GYRE_TRY(gyre_ran(done.out + "\n" + done.err, trial.collective, ranks_of(trial), times));
  }
  if (done.code == 0) return done;
  if (auto times = nccl_tests_times(done.out); !times && times.error().code == wrong_results) return std::move(times).error();
  return Error{Code::system, fmt::format("{}: {}", done.end(), why_failed(done))};
}

/// That as many ran as are said, and, where each says on which host, as many on each. Hosts may have the same name, so one is not too few.
Status check_ranks(const NcclTrial& trial, const NcclTestsRanks& ranks) {
  if (ranks.count == 0) return {};
  if (ranks.count != ranks_of(trial))
    return Error{Code::invalid_argument, fmt::format("{} ranks ran, not {}", ranks.count, ranks_of(trial))};
  int said = 0;
  for (const auto& [host, on] : ranks.on_host) said += on;
  if (said != ranks.count || (ranks.on_host.size() == 1 && trial.nodes > 1)) return {};
  if (ranks.on_host.size() != static_cast<size_t>(trial.nodes))
    return Error{Code::invalid_argument, fmt::format("its ranks ran on {} hosts, not on {}", ranks.on_host.size(), trial.nodes)};
  for (const auto& [host, on] : ranks.on_host) {
    if (on != trial.ranks_per_node)
      return Error{Code::invalid_argument, fmt::format("{} ranks ran on {}, not {}", on, host, trial.ranks_per_node)};
  }
  return {};
}

/// That it runs, and as what it was forced to.
Status look_at(const NcclTrial& trial, const std::string& choice, NcclTimes& times) {
  const Finished done = GYRE_TRY(run_forced(trial, choice, true));
  const std::string log = done.out + "\n" + done.err;
  const auto all = nccl_choices_in(log);
  const auto ran = all.find(std::string(name(trial.collective)));
  if (choice != nccls_own) {
    if (ran == all.end() || ran->second == std::set{choice}) return {};
    return Error{Code::internal, fmt::format("NCCL ran {} in its place", fmt::join(ran->second, ", "))};
  }
  const NcclTestsRanks ranks = nccl_tests_ranks(done.out);
  GYRE_TRY(check_ranks(trial, ranks));
  if (ran == all.end() && !all.empty())
    return Error{Code::invalid_argument, fmt::format("NCCL ran {}, not {}", all.begin()->first, name(trial.collective))};
  if (all.empty())
    fmt::print(
        "# NCCL does not say what it runs: it is too old for that, or the variables don't reach its ranks (then {{env}} before the program "
        "helps); what it runs as another is not noticed\n");
  times.device = ranks.device;
  times.version = nccl_version_in(log);
  return {};
}

Status time_run(const NcclTrial& trial, const std::string& choice, NcclTimes& times) {
  const Finished done = GYRE_TRY(run_forced(trial, choice, false));
  const auto by_size = GYRE_TRY(nccl_tests_times(done.out));
  for (const auto& [bytes, us] : by_size) times.us[choice][bytes].push_back(us);
  return {};
}

/// In a round. A run may fail for a reason that passes, and is tried once more; not what hangs, which takes its time, nor what gives wrong
/// results, though it might not do so always.
Status time_choice(const NcclTrial& trial, const std::string& choice, NcclTimes& times) {
  Status first = time_run(trial, choice, times);
  if (first || first.error().code == Code::timeout || first.error().code == wrong_results) return first;
  fmt::print("# {} is tried once more: {}\n", choice == nccls_own ? "NCCL's own choice" : choice, first.error().what);
  std::fflush(stdout);
  return time_run(trial, choice, times);
}

/// Leaves out the choices with which it fails.
Status keep_working(std::vector<std::string>& forced, NcclTimes& times, const std::function<Status(const std::string&)>& work) {
  std::vector<std::string> kept;
  for (const std::string& choice : forced) {
    if (const Status done = work(choice)) {
      kept.push_back(choice);
    } else {
      fmt::print("# {} is left out: {}\n", choice, done.error().what);
      times.us.erase(choice);
    }
    std::fflush(stdout);
  }
  forced = std::move(kept);
  if (forced.empty()) return Error{Code::internal, "nothing ran but NCCL's own choice"};
  return {};
}

Error with_own(const Error& error) { return {error.code, fmt::format("with NCCL's own choice: {}", error.what)}; }

/// All rounds, or those before one in which NCCL's own choice fails. It is the first of a round, so that none of another's times are over.
Status time_rounds(const NcclTrial& trial, std::vector<std::string> forced, NcclTimes& times) {
  constexpr int least_rounds = 2;  // one has no spread
  for (times.rounds = 0; times.rounds < trial.rounds; ++times.rounds) {
    const auto begin = Clock::now();
    if (const Status own = time_choice(trial, std::string(nccls_own), times); !own) {
      if (times.rounds < least_rounds || own.error().code == wrong_results) return with_own(own.error());
      fmt::print("# the measuring ends with {} of {} rounds: NCCL's own choice fails: {}\n", times.rounds, trial.rounds, own.error().what);
      break;
    }
    GYRE_TRY(keep_working(forced, times, [&](const std::string& choice) { return time_choice(trial, choice, times); }));
    fmt::print("# round {} of {}: {} runs in {:.0f} s\n", times.rounds + 1, trial.rounds, forced.size() + 1,
               std::chrono::duration<double>(Clock::now() - begin).count());
    std::fflush(stdout);
  }
  return {};
}

}  // namespace

Result<NcclTimes> time_nccl(const NcclTrial& trial) {
  std::vector<std::string> forced = nccl_candidates(trial.collective);
  forced.erase(forced.begin());  // NCCL's own
  if (!trial.library.empty()) forced.emplace_back(gyre_beside);
  NcclTimes times;
  fmt::print("# {} of {} ranks: {} choices but NCCL's own, each looked at and then timed in {} rounds\n", name(trial.collective),
             ranks_of(trial), forced.size(), trial.rounds);
  if (const Status own = look_at(trial, std::string(nccls_own), times); !own) return with_own(own.error());
  GYRE_TRY(keep_working(forced, times, [&](const std::string& choice) { return look_at(trial, choice, times); }));
  GYRE_TRY(time_rounds(trial, std::move(forced), times));
  return times;
}

}  // namespace gyre::perf
