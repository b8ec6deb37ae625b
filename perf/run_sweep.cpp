#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "base/log.h"
#include "kernels/reduce_host.h"
#include "perf/commands.h"
#include "perf/launch.h"
#include "perf/report.h"
#include "transport/launch.h"

namespace gyre::perf {
namespace {

std::vector<std::string> about(engine::Communicator& communicator, const SweepCommand& command) {
  std::vector<std::string> kinds;
  for (const std::string& name : communicator.transports()) {
    if (!name.empty() && std::find(kinds.begin(), kinds.end(), name) == kinds.end()) kinds.push_back(name);
  }
  const SweepOptions& o = command.sweep;
  return {
      command.command_line,
      fmt::format("ranks {}, transport {}, reductions {}, minbytes {}, maxbytes {}, step {}, warmup {}, iters {}, validation {}",
                  communicator.size(), kinds.empty() ? "none" : fmt::format("{}", fmt::join(kinds, " and ")), kernels::isa(), o.min_bytes,
                  o.max_bytes, o.step_bytes != 0 ? fmt::format("{} bytes", o.step_bytes) : fmt::format("factor {}", o.step_factor),
                  o.warmup, o.iterations, o.check)};
}

engine::Call call_of(const Case& c) { return {c.benchmark->collective.value_or(Collective::all_reduce), c.count, c.type, c.op, c.root}; }

Result<uint64_t> run(const SweepCommand& command, const Config& config, const transport::Rendezvous& rendezvous) {
  auto communicator = GYRE_TRY(engine::Communicator::create(rendezvous, config));
  const bool shows = communicator->rank() == 0;
  const size_t points = GYRE_TRY(rows_of(command.sweep, communicator->size()));
  Report report;
  SweepEvents events;
  size_t done = 0;
  uint64_t wrong = 0;
  events.on_start = [&](size_t bytes) {
    if (shows) report.progress(bytes, done, points);
  };
  events.on_row = [&](const Row& row) {
    ++done;
    wrong += row.wrong();
    if (!shows) return;
    report.row(row);
    if (command.explain) report.note(communicator->explain(call_of(row.call)));
  };
  if (command.sweep.benchmark->collective) {
    events.predict = [&](const Case& c) -> std::optional<double> {
      const auto us = communicator->predicted_us(call_of(c));
      return us ? std::optional(*us) : std::nullopt;
    };
  }
  if (shows) report.head(about(*communicator, command), events.predict != nullptr);
  GYRE_TRY(sweep(*communicator, command.sweep, events));
  if (shows) report.tail();
  if (shows && !command.json.empty()) {
    const RunFacts facts{command.command_line, command.sweep.benchmark->name, communicator->size(), communicator->transports()};
    GYRE_TRY(write_json(command.json, facts, report.rows()));
  }
  GYRE_TRY(communicator->bootstrap().barrier());  // nobody leaves while others may still need it
  return wrong;
}

int rank_main(const SweepCommand& command, const Config& config, const transport::Rendezvous& rendezvous) {
  log::set_prefix(fmt::format("rank {}: ", rendezvous.rank));
  const auto wrong = run(command, config, rendezvous);
  if (!wrong) {
    Error error = wrong.error();
    const std::string prefix = fmt::format("rank {}: ", rendezvous.rank);
    if (!error.what.starts_with(prefix)) error.what = prefix + error.what;
    return complain(error);
  }
  return *wrong == 0 ? 0 : 3;
}

}  // namespace

int complain(const Error& error) {
  fmt::print(stderr, "gyre-perf: {}\n", error.what);
  return error.code == Code::invalid_argument ? 2 : 1;
}

int run_sweep(const SweepCommand& command, const Config& config) {
  // What is wrong with the options is said once, before any rank starts.
  if (const auto sizes = sizes_of(command.sweep); !sizes) return complain(sizes.error());
  if (!command.json.empty()) {
    std::FILE* file = std::fopen(command.json.c_str(), "a");
    if (file == nullptr) return complain({Code::invalid_argument, fmt::format("--json {}: cannot be written", command.json)});
    std::fclose(file);
  }
  const std::chrono::seconds timeout(*config.timeout);
  auto given = transport::rendezvous_from_environment(transport::Environment::of_process());
  if (!given) return complain(given.error());
  std::optional<transport::Rendezvous>& launched = *given;
  if (launched && command.ranks && *command.ranks != launched->size) {
    return complain({Code::invalid_argument, fmt::format("--ranks {}: the launcher started {}", *command.ranks, launched->size)});
  }
  const int ranks = launched ? launched->size : command.ranks.value_or(2);
  if (const auto roots = roots_of(command.sweep, ranks); !roots) return complain(roots.error());
  if (!launched) {
    return run_local_ranks(ranks, timeout, [&](const transport::Rendezvous& r) { return rank_main(command, config, r); });
  }
  launched->timeout = timeout;
  return rank_main(command, config, *launched);
}

}  // namespace gyre::perf
