#include <memory>

#include "perf/cli.h"
#include "perf/cli_values.h"
#include "perf/commands.h"
#include "perf/tuner_plugin.h"

namespace gyre::perf {
namespace {

struct NetFlags {
  NetCommand command;
  bool only_bandwidth = false;
  bool only_latency = false;
};

void add_setting(CLI::App* sub, NetSetting& setting) {
  sub->add_option("-c,--connections", setting.connections, "Connections at a time (1)")->check(CLI::Range(1, 64));
  sub->add_option("--depth", setting.depth, "Messages under way on a connection (8)")->check(CLI::Range(1, most_net_depth));
  sub->add_flag("--bidirectional", setting.bidirectional, "Both ways at a time; figures are the sum");
  sub->add_flag("--shared-buffer", setting.shared_buffer, "All messages of a connection from and to the same memory, as ucx_perftest does");
  sub->add_option("--check", setting.checked, "Messages of each connection whose data is checked; 0: none (9)")
      ->check(CLI::Range(0, 1 << 20));
  sub->add_option_function<int64_t>(
         "--time-ms", [&setting](int64_t ms) { setting.time = std::chrono::milliseconds(ms); }, "How long a figure is measured (200)")
      ->check(CLI::Range(1, 600000));
}

}  // namespace

Subcommand add_net(CLI::App& app) {
  const auto flags = std::make_shared<NetFlags>();  // shared with CLI11's options, which refer to it
  NetCommand* command = &flags->command;
  command->sizes.step_factor = 4;
  CLI::App* sub = app.add_subcommand("net", "Measure any NCCL net plugin between two ranks: bandwidth, message rate, latency");
  sub->add_option("plugin", command->plugin, "The plugin's shared object")->required();
  sub->add_option("--version", command->table, "Table of the plugin to go through (the newest)")
      ->check(CLI::Range(oldest_net_table, newest_net_table));
  sub->add_option("--device", command->device, "Device of the plugin (0)")->check(CLI::Range(0, 1 << 20));
  add_bytes(sub, "-b,--minbytes", command->sizes.min_bytes, "Smallest message (8)");
  add_bytes(sub, "-e,--maxbytes", command->sizes.max_bytes, "Largest message (64M)");
  sub->add_option("-f,--stepfactor", command->sizes.step_factor, "Factor between sizes (4)");
  add_bytes(sub, "-i,--stepbytes", command->sizes.step_bytes, "Fixed step between sizes, in place of the factor");
  add_setting(sub, command->setting);
  CLI::Option* only = sub->add_flag("--bandwidth", flags->only_bandwidth, "Bandwidth and message rate only");
  sub->add_flag("--latency", flags->only_latency, "Latency only")->excludes(only);
  sub->add_flag("--spin", command->spin, "Keep the processor while nothing moves, as ucx_perftest does; NCCL yields it");
  sub->add_flag("--verbose", command->verbose, "Print what the plugin logs at INFO too");
  sub->add_option("--json", command->json, "Also write the results to this file, a JSON object a line");
  return {sub, [flags](const Invocation& given) {
            NetCommand& asked = flags->command;
            asked.command_line = given.command_line;
            asked.latency = !flags->only_bandwidth;
            asked.bandwidth = !flags->only_latency;
            return net(asked, given.config);
          }};
}

Subcommand add_tuner(CLI::App& app) {
  const auto command = std::make_shared<TunerCommand>();
  command->sizes.step_factor = 4;
  command->sizes.max_bytes = size_t{1} << 30;
  CLI::App* sub = app.add_subcommand("tuner", "Ask any NCCL tuner plugin what it would choose, and measure what that costs");
  sub->add_option("plugin", command->plugin, "The plugin's shared object")->required();
  sub->add_option("--version", command->table, "Table of the plugin to go through (the newest)")
      ->check(CLI::Range(oldest_tuner_table, newest_tuner_table));
  sub->add_option("--ranks", command->ranks, "Ranks of the communicator (8)")->check(CLI::Range(1, 1 << 30));
  sub->add_option("--nodes", command->nodes, "Nodes that they are on (1)")->check(CLI::Range(1, 1 << 30));
  add_bytes(sub, "-b,--minbytes", command->sizes.min_bytes, "Smallest size (8)");
  add_bytes(sub, "-e,--maxbytes", command->sizes.max_bytes, "Largest size (1G)");
  sub->add_option("-f,--stepfactor", command->sizes.step_factor, "Factor between sizes (4)");
  return {sub, [command](const Invocation& given) {
            command->command_line = given.command_line;
            return tuner(*command);
          }};
}

}  // namespace gyre::perf
