#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <utility>

#include "base/log.h"
#include "perf/commands.h"
#include "perf/launch.h"
#include "perf/net_agree.h"
#include "perf/net_report.h"
#include "transport/launch.h"

namespace gyre::perf {
namespace {

constexpr int net_ranks = 2;

/// A rank's plugin, started.
struct NetSession {
  std::unique_ptr<NetPlugin> plugin;
  void* context;
  NetFacts facts;
};

Result<NetSession> start_plugin(const NetCommand& command, const Config& config) {
  NetSession session{GYRE_TRY(NetPlugin::open(command.plugin, command.table)), nullptr, {}};
  NetPlugin& plugin = *session.plugin;
  NetInit init;
  if (command.verbose) init.logger = everything_to_stderr();
  session.context = GYRE_TRY(plugin.init(init));
  const int devices = GYRE_TRY(plugin.devices());
  if (command.device >= devices) {
    return Error{Code::invalid_argument, fmt::format("--device {}: net plugin {} has {}, from 0", command.device, plugin.name(), devices)};
  }
  const ncclNetProperties_v12_t device = GYRE_TRY(plugin.properties(command.device));
  session.facts = {std::string(plugin.name()), plugin.version(), device.name != nullptr ? device.name : "", device.speed, config};
  return session;
}

// What ranks that were started one by one must have in common.
Status agree_on_calls(transport::Bootstrap& bootstrap, const NetCommand& c) {
  const NetSetting& s = c.setting;
  const std::string mine =
      fmt::format("-b {} -e {} -f {} -i {} -c {} --depth {} --bidirectional {} --shared-buffer {} --check {} --time-ms {} tests {}{}",
                  c.sizes.min_bytes, c.sizes.max_bytes, c.sizes.step_factor, c.sizes.step_bytes, s.connections, s.depth, s.bidirectional,
                  s.shared_buffer, s.checked, s.time.count(), c.bandwidth, c.latency);
  const auto all = GYRE_TRY(bootstrap.all_gather(mine));
  if (std::equal(all.begin() + 1, all.end(), all.begin())) return {};
  return Error{Code::invalid_usage, fmt::format("options differ: rank 0 has {}; rank 1 has {}", all[0], all[1])};
}

Result<NetRow> measure_row(NetMeasurement& measurement, const NetCommand& command, size_t bytes) {
  NetRow row;
  row.bytes = bytes;
  if (command.setting.checked > 0) row.wrong = GYRE_TRY(measurement.check(bytes));
  if (command.bandwidth) row.bandwidth = GYRE_TRY(measurement.bandwidth(bytes));
  if (command.latency) row.latency = GYRE_TRY(measurement.latency(bytes));
  return row;
}

void print_head(const NetCommand& command, const NetFacts& facts) {
  fmt::print("# {}\n# net plugin {}, table {}, device {}: {}, {} Mbit/s\n#\n{}", command.command_line, facts.name, facts.table,
             command.device, facts.device, facts.speed_mbit, net_table_head());
  std::fflush(stdout);
}

Result<uint64_t> run_rows(const NetCommand& command, const NetFacts& facts, NetMeasurement& measurement, bool shows) {
  std::vector<NetRow> rows;
  uint64_t wrong = 0;
  if (shows) print_head(command, facts);
  for (const size_t bytes : GYRE_TRY(sizes_of(command.sizes))) {
    rows.push_back(GYRE_TRY(measure_row(measurement, command, bytes)));
    wrong += rows.back().wrong.value_or(0);
    if (shows) fmt::print("{}", net_table_row(command, rows.back()));
    std::fflush(stdout);
  }
  if (shows && command.setting.checked > 0) fmt::print("# Wrong bytes : {} {}\n", wrong, wrong == 0 ? "OK" : "FAILED");
  if (shows && !command.json.empty()) GYRE_TRY(write_net_json(command.json, command, facts, rows));
  return wrong;
}

Result<uint64_t> run_net(const NetCommand& command, const Config& config, transport::Bootstrap& bootstrap, Result<NetSession> started,
                         const Status& ready) {
  GYRE_TRY(agree(bootstrap, ready));
  GYRE_TRY(agree_on_calls(bootstrap, command));
  NetPlugin& plugin = *started->plugin;
  NetPatience patience(bootstrap, std::chrono::seconds(*config.timeout), !command.spin);
  const int count = command.setting.connections;
  const auto connections = GYRE_TRY(NetConnections::make(plugin, started->context, command.device, bootstrap, patience, count,
                                                         command.setting.bidirectional ? count : 1));
  uint64_t wrong = 0;
  {
    NetMeasurement measurement = GYRE_TRY(NetMeasurement::make(plugin, *connections, bootstrap, patience, command.setting));
    wrong = GYRE_TRY(run_rows(command, started->facts, measurement, bootstrap.rank() == 0));
  }
  GYRE_TRY(connections->close());
  GYRE_TRY(plugin.finalize(started->context));
  GYRE_TRY(bootstrap.barrier());
  return wrong;
}

// Of ranks on one terminal, the one that has an error says it.
int net_rank(const NetCommand& command, const Config& config, const transport::Rendezvous& rendezvous, bool alone) {
  const std::string prefix = fmt::format("rank {}: ", rendezvous.rank);
  log::set_prefix(prefix);
  const auto told = [&](const Error& error) { return complain({error.code, prefix + error.what, error.file, error.line}); };
  auto started = start_plugin(command, config);  // before there are threads: it may load UCX (transport::open_ucx_before_threads)
  const auto bootstrap = transport::Bootstrap::join(rendezvous);
  if (!bootstrap) return told(started ? bootstrap.error() : started.error());
  const Status ready = started ? Status() : Status(started.error());
  const auto wrong = run_net(command, config, **bootstrap, std::move(started), ready);
  if (wrong) return *wrong == 0 ? 0 : 3;
  const bool mine = says(**bootstrap, ready, wrong.error());
  (*bootstrap)->fail(wrong.error());
  if (mine || alone) return told(wrong.error());
  return wrong.error().code == Code::invalid_argument ? 2 : 1;
}

}  // namespace

int net(const NetCommand& command, const Config& config) {
  if (const auto sizes = sizes_of(command.sizes); !sizes) return complain(sizes.error());
  if (!command.json.empty()) {
    std::FILE* file = std::fopen(command.json.c_str(), "a");
    if (file == nullptr) return complain({Code::invalid_argument, fmt::format("--json {}: cannot be written", command.json)});
    std::fclose(file);
  }
  const std::chrono::seconds timeout(*config.timeout);
  auto launched = transport::rendezvous_from_environment(transport::Environment::of_process());
  if (!launched) return complain(launched.error());
  if (!*launched) {
    return run_local_ranks(net_ranks, timeout, [&](const transport::Rendezvous& r) { return net_rank(command, config, r, false); });
  }
  transport::Rendezvous& rendezvous = **launched;
  if (rendezvous.size != net_ranks) {
    return complain({Code::invalid_argument, fmt::format("net measures between 2 ranks; the launcher started {}", rendezvous.size)});
  }
  rendezvous.timeout = timeout;
  return net_rank(command, config, rendezvous, true);
}

}  // namespace gyre::perf
