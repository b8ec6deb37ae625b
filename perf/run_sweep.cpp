#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>

#include "base/log.h"
#include "kernels/reduce_host.h"
#include "perf/commands.h"
#include "perf/launch.h"
#include "perf/memory.h"
#include "perf/nccl_tests_environment.h"
#include "perf/report_json.h"
#include "perf/split.h"
#include "perf/sweep_ranks.h"
#include "perf/watchdog.h"
#include "transport/bootstrap_text.h"
#include "transport/launch.h"
#include "transport/transport.h"

namespace gyre::perf {
namespace {

std::vector<std::string> about(engine::Communicator& communicator, const SweepCommand& command, const Groups& groups) {
  std::vector<std::string> kinds;
  for (const std::string& name : communicator.transports()) {
    if (!name.empty() && std::find(kinds.begin(), kinds.end(), name) == kinds.end()) kinds.push_back(name);
  }
  const SweepOptions& o = command.sweep;
  const Timing& t = o.timing;
  std::vector<std::string> lines{
      command.command_line,
      fmt::format("ranks {}, transport {}, reductions {}, minbytes {}, maxbytes {}, step {}, warmup {}, iters {}, validation {}",
                  communicator.size(), kinds.empty() ? "none" : fmt::format("{}", fmt::join(kinds, " and ")), kernels::isa(), o.min_bytes,
                  o.max_bytes, o.step_bytes != 0 ? fmt::format("{} bytes", o.step_bytes) : fmt::format("factor {}", o.step_factor),
                  t.warmup, t.iterations, o.check),
      fmt::format("agg iters {}, run cycles {}, blocking {}, average {}, unalign {}, local register {}, communicators {}", t.calls,
                  o.cycles, static_cast<int>(t.blocking), static_cast<int>(t.average), o.unalign, o.local_register, o.communicators)};
  for (const auto& [color, ranks] : groups) lines.push_back(fmt::format("group {}: {}", color, transport::bootstrap::ranks_text(ranks)));
  lines.insert(lines.end(), command.notes.begin(), command.notes.end());
  return lines;
}

constexpr int exit_wrong = 3;
constexpr int exit_slow = 4;

engine::Call call_of(const Case& c) { return {c.benchmark->collective.value_or(Collective::all_reduce), c.count, c.type, c.op, c.root}; }

MemoryOfRank memory_here() { return {transport::host_identity(transport::Environment::of_process()), available_memory()}; }

// Rank 0's part: the table, and the file.
struct Shown {
  Report report;
  std::optional<JsonLines> json;
  bool cut = false;  // the time limit came within a row
  std::chrono::steady_clock::time_point start = std::chrono::steady_clock::now();

  Status open(const SweepCommand& command, const Config& config, engine::Communicator& communicator, const Groups& groups) {
    const bool predicts = command.sweep.benchmark->collective.has_value();
    report.head(about(communicator, command, groups), {predicts, command.sweep.timing.percentiles, command.timestamps});
    if (command.json.empty()) return {};
    const RunFacts facts{
        command.command_line, communicator.size(), communicator.transports(), predicts ? *config.algorithm : "batch", groups, config};
    json.emplace(GYRE_TRY(JsonLines::open(command.json, facts, command.sweep)));
    return {};
  }
  Status row(const Row& row) {
    report.row(row);
    cut = cut || row.cut;
    return json ? json->row(row) : Status();
  }
  Status close(const SweepCommand& command, uint64_t rows, uint64_t of) {
    const bool limited = cut || of == 0 || rows < of;
    if (limited) {
      const std::string all = of == 0 ? "" : fmt::format(" of {}", of);
      report.note(fmt::format("--time-limit {} s: ended after {}{} rows", *command.sweep.limit_seconds, rows, all));
    }
    report.tail(command.sweep.benchmark->name, command.wanted_busbw);
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    return json ? json->end({report.totals(), limited, took.count(), command.wanted_busbw}) : Status();
  }
};

// The exit code.
Result<int> run(SweepCommand command, const Config& config, const transport::Rendezvous& rendezvous) {
  SweepOptions& o = command.sweep;
  transport::open_ucx_before_threads(config);
  const std::string who = fmt::format("rank {}: ", rendezvous.rank);
  Watchdog joining(command.timeout_s, who);
  joining.begin("joining the other ranks");
  const SweepRanks ranks = GYRE_TRY(SweepRanks::join(rendezvous, config, o.communicators, command.split));
  joining.end();
  Watchdog watchdog(command.timeout_s, who, [&](const std::string& why) { ranks.abort(why); });
  watchdog.begin("agreeing on what to measure");
  engine::Communicator& communicator = *ranks.communicators().front();
  transport::Bootstrap& everybody = ranks.everybody();
  if (ranks.split()) GYRE_TRY(compare_options(everybody, o));  // a group compares its own
  const std::string reduced = GYRE_TRY(fit_to_memory(everybody, memory_here(), o));
  if (!reduced.empty()) command.notes.push_back(reduced);
  const bool shows = everybody.rank() == 0;
  const uint64_t points = GYRE_TRY(rows_of(o, communicator.size())) * static_cast<uint64_t>(o.cycles);
  Shown shown;
  if (shows) GYRE_TRY(shown.open(command, config, communicator, ranks.groups()));
  SweepEvents events;
  Totals totals;
  events.on_start = [&](size_t bytes) -> Status {
    if (ranks.split()) {  // groups begin each row together
      watchdog.begin("waiting for the other groups");
      GYRE_TRY(everybody.barrier());
    }
    watchdog.begin(fmt::format("{} of {} bytes", o.benchmark->name, bytes));
    if (shows) shown.report.progress(bytes, totals.rows, points);
    return {};
  };
  events.on_row = [&](const Row& row) -> Status {
    totals.add(row);
    if (!shows) return {};
    GYRE_TRY(shown.row(row));
    if (command.explain) shown.report.note(communicator.explain(call_of(row.call), o.buffers()));
    return {};
  };
  if (o.benchmark->collective) {
    events.predict = [&](const Case& c) -> std::optional<double> {
      const auto us = communicator.predicted_us(call_of(c), o.buffers());
      return us ? std::optional(*us) : std::nullopt;
    };
  }
  const uint64_t rows = GYRE_TRY(sweep(ranks.communicators(), o, events));
  watchdog.end();
  std::string notes = GYRE_TRY(ranks.totals_of_groups(totals));
  if (shows) GYRE_TRY(shown.close(command, rows, points));
  if (command.memory) notes += GYRE_TRY(ranks.peak_memory());
  if (shows) shown.report.note(notes);
  GYRE_TRY(ranks.leave());
  if (totals.wrong != 0) return exit_wrong;
  const bool enough = !shows || !command.wanted_busbw || is_enough(totals.average_busbw(), *command.wanted_busbw);
  return enough ? 0 : exit_slow;
}

int rank_main(const SweepCommand& command, const Config& config, const transport::Rendezvous& rendezvous) {
  log::set_prefix(fmt::format("rank {}: ", rendezvous.rank));
  const auto code = run(command, config, rendezvous);
  if (!code) {
    Error error = code.error();
    const std::string prefix = fmt::format("rank {}: ", rendezvous.rank);
    if (!error.what.starts_with(prefix)) error.what = prefix + error.what;
    return complain(error);
  }
  return *code;
}

}  // namespace

int complain(const Error& error) {
  fmt::print(stderr, "gyre-perf: {}\n", error.what);
  return error.code == Code::invalid_argument ? 2 : 1;
}

int printed(int code) {
  const bool lost = std::fflush(stdout) != 0 || std::ferror(stdout) != 0;
  return lost && code == 0 ? complain({Code::system, "standard output takes no more, so what was printed is lost"}) : code;
}

int run_sweep(SweepCommand command, const Config& config) {
  // What is wrong with the options is said once, before any rank starts.
  if (const auto sizes = sizes_of(command.sweep); !sizes) return complain(sizes.error());
  const std::chrono::seconds timeout(*config.timeout);
  const bool by_threads = command.threads || command.gpus;
  const int product = command.threads.value_or(1) * command.gpus.value_or(1);
  const auto environment = transport::Environment::of_process();
  const auto wanted = wanted_busbw(environment);
  if (!wanted) return complain(wanted.error());
  command.wanted_busbw = *wanted;
  const auto split = wanted_split(environment);
  if (!split) return complain(split.error());
  command.split = *split;
  auto given = transport::rendezvous_from_environment(environment);
  if (!given) return complain(given.error());
  std::optional<transport::Rendezvous>& launched = *given;
  if (launched && command.ranks && *command.ranks != launched->size) {
    return complain({Code::invalid_argument, fmt::format("--ranks {}: the launcher started {}", *command.ranks, launched->size)});
  }
  if (launched && product != 1) {
    return complain(
        {Code::invalid_argument, fmt::format("-t {} -g {}: under a launcher a process is one rank; let it start {} times as many",
                                             command.threads.value_or(1), command.gpus.value_or(1), product)});
  }
  const int ranks = launched ? launched->size : by_threads ? product : command.ranks.value_or(2);
  if (const auto roots = roots_of(command.sweep, ranks); !roots) return complain(roots.error());
  if (command.split) {
    const Status fit = check_split(command.sweep, *command.split, groups_of(*command.split, ranks));
    if (!fit) return complain(fit.error());
  }
  const bool writes = !launched || launched->rank == 0;  // the others may run where nothing can be written
  if (writes && !command.json.empty()) {
    std::FILE* file = std::fopen(command.json.c_str(), "a");
    if (file == nullptr) return complain({Code::invalid_argument, fmt::format("--json {}: cannot be written", command.json)});
    std::fclose(file);
  }
  if (!launched) {
    return run_local_ranks(ranks, timeout, [&](const transport::Rendezvous& r) { return rank_main(command, config, r); });
  }
  launched->timeout = timeout;
  return rank_main(command, config, *launched);
}

}  // namespace gyre::perf
