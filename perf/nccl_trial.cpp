#include "perf/nccl_trial.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdio>
#include <functional>
#include <set>
#include <string_view>

#include "base/text.h"
#include "perf/nccl_forced.h"
#include "perf/nccl_tests_output.h"

namespace gyre::perf {
namespace {

using Clock = std::chrono::steady_clock;

// A launcher's last line often says no more than the exit code.
std::string why_failed(const Finished& done) {
  const std::string warning = nccl_warning_in(done.out + "\n" + done.err);
  constexpr size_t most = 300;
  return printable(warning.empty() ? done.last_line() : warning, most);
}

Result<Finished> run_forced(const NcclTrial& trial, std::string_view choice, bool told) {
  const Variables variables = nccl_variables(choice, told);
  Finished done = GYRE_TRY(run_command(with_env(trial.command, variables), variables, {trial.limit}));
  if (done.code != 0) return Error{Code::internal, fmt::format("{}: {}", done.end(), why_failed(done))};
  return done;
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
  if (ranks.count != 0 && ranks.count != trial.ranks)
    return Error{Code::invalid_argument, fmt::format("{} ranks ran, not {}", ranks.count, trial.ranks)};
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

Status time_round(const NcclTrial& trial, const std::string& choice, NcclTimes& times) {
  const Finished done = GYRE_TRY(run_forced(trial, choice, false));
  const auto by_size = GYRE_TRY(nccl_tests_times(done.out));
  for (const auto& [bytes, us] : by_size) times.us[choice][bytes].push_back(us);
  return {};
}

/// Does it with each choice, and leaves out those with which it fails.
Status with_each(std::vector<std::string>& choices, NcclTimes& times, const std::function<Status(const std::string&)>& work) {
  std::vector<std::string> left;
  for (const std::string& choice : choices) {
    const Status done = work(choice);
    std::fflush(stdout);
    if (done) {
      left.push_back(choice);
      continue;
    }
    if (choice == nccls_own) return Error{done.error().code, fmt::format("with NCCL's own choice: {}", done.error().what)};
    fmt::print("# {} is left out: {}\n", choice, done.error().what);
    times.us.erase(choice);
  }
  choices = std::move(left);
  if (choices.size() == 1) return Error{Code::internal, "nothing ran but NCCL's own choice"};
  return {};
}

}  // namespace

Result<NcclTimes> time_nccl(const NcclTrial& trial) {
  std::vector<std::string> choices = nccl_candidates(trial.collective);
  NcclTimes times;
  fmt::print("# {} of {} ranks: {} choices but NCCL's own, each looked at and then timed in {} rounds\n", name(trial.collective),
             trial.ranks, choices.size() - 1, trial.rounds);
  GYRE_TRY(with_each(choices, times, [&](const std::string& choice) { return look_at(trial, choice, times); }));
  for (int round = 1; round <= trial.rounds; ++round) {
    const auto begin = Clock::now();
    GYRE_TRY(with_each(choices, times, [&](const std::string& choice) { return time_round(trial, choice, times); }));
    fmt::print("# round {} of {}: {} runs in {:.0f} s\n", round, trial.rounds, choices.size(),
               std::chrono::duration<double>(Clock::now() - begin).count());
    std::fflush(stdout);
  }
  return times;
}

}  // namespace gyre::perf
