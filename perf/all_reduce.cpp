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

std::vector<std::string> about(engine::Communicator& communicator, const AllReduceCommand& command) {
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

Result<uint64_t> run(const AllReduceCommand& command, const Config& config, const transport::Rendezvous& rendezvous) {
  auto communicator = GYRE_TRY(engine::Communicator::create(rendezvous, config));
  const bool shows = communicator->rank() == 0;
  const size_t points = GYRE_TRY(sizes_of(command.sweep)).size() * command.sweep.types.size() * command.sweep.ops.size();
  Report report;
  if (shows) report.head(about(*communicator, command));
  size_t done = 0;
  uint64_t wrong = 0;
  const Status status = sweep(
      *communicator, command.sweep,
      [&](size_t bytes) {
        if (shows) report.progress(bytes, done, points);
      },
      [&](const Row& row) {
        ++done;
        wrong += row.out_of_place.wrong + row.in_place.wrong;
        if (shows) report.row(row);
      });
  if (!status) return status.error();
  if (shows) report.tail();
  if (shows && !command.json.empty()) {
    GYRE_TRY(write_json(command.json, command.command_line, communicator->size(), communicator->transports(), report.rows()));
  }
  GYRE_TRY(communicator->bootstrap().barrier());  // nobody leaves while others may still need it
  return wrong;
}

int rank_main(const AllReduceCommand& command, const Config& config, const transport::Rendezvous& rendezvous) {
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

int all_reduce(const AllReduceCommand& command, const Config& config) {
  // What is wrong with the options is said once, before any rank starts.
  if (const auto sizes = sizes_of(command.sweep); !sizes) return complain(sizes.error());
  if (!command.json.empty()) {
    std::FILE* file = std::fopen(command.json.c_str(), "a");
    if (file == nullptr) return complain({Code::invalid_argument, fmt::format("--json {}: cannot be written", command.json)});
    std::fclose(file);
  }
  const std::chrono::seconds timeout(*config.timeout);
  auto rendezvous = transport::rendezvous_from_environment(transport::Environment::of_process());
  if (!rendezvous) return complain(rendezvous.error());
  if (!*rendezvous) {
    const auto main = [&](const transport::Rendezvous& r) { return rank_main(command, config, r); };
    return run_local_ranks(command.ranks.value_or(2), timeout, main);
  }
  transport::Rendezvous& given = **rendezvous;
  given.timeout = timeout;
  if (command.ranks && *command.ranks != given.size) {
    return complain({Code::invalid_argument, fmt::format("--ranks {}: the launcher started {}", *command.ranks, given.size)});
  }
  return rank_main(command, config, given);
}

}  // namespace gyre::perf
