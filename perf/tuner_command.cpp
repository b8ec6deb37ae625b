#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "perf/commands.h"
#include "perf/tuner_plugin.h"
#include "plugin/tuner_words.h"

namespace gyre::perf {
namespace {

constexpr int asked_calls = 1000;      // of which one figure is made
constexpr double longest_us = 10'000;  // that one takes
constexpr int figures = 5;             // of which the median counts

constexpr std::array<std::pair<const char*, ncclFunc_t>, 5> collectives{{{"all_reduce", ncclFuncAllReduce},
                                                                         {"reduce_scatter", ncclFuncReduceScatter},
                                                                         {"all_gather", ncclFuncAllGather},
                                                                         {"broadcast", ncclFuncBroadcast},
                                                                         {"reduce", ncclFuncReduce}}};
// As dear as can be: whatever a tuner makes cheaper is its choice.
constexpr float untouched = 1e9F;

/// Of a machine with everything that NCCL has.
TunerCosts costs_of(ncclFunc_t collective) {
  TunerCosts costs{};
  for (int a = 0; a < NCCL_NUM_ALGORITHMS; ++a)
    for (int p = 0; p < NCCL_NUM_PROTOCOLS; ++p)
      costs[static_cast<size_t>(a)][static_cast<size_t>(p)] = plugin::nccl_has(collective, a, p) ? untouched : NCCL_ALGO_PROTO_IGNORE;
  return costs;
}

/// "ring/simple": the cheapest; NCCL's own where the tuner has left several as they were, and none where it has left nothing.
std::string text(const TunerCosts& costs) {
  std::string least = "none";
  float cost = std::numeric_limits<float>::infinity();
  int alike = 0;
  for (size_t a = 0; a < costs.size(); ++a) {
    for (size_t p = 0; p < plugin::tuner_protocols.size(); ++p) {
      if (costs[a][p] < 0) continue;
      if (costs[a][p] < cost) {
        cost = costs[a][p];
        least = fmt::format("{}/{}", plugin::tuner_algorithms[a], plugin::tuner_protocols[p]);
        alike = 0;
      }
      if (costs[a][p] == cost) ++alike;
    }
  }
  return cost == untouched && alike > 1 ? "NCCL's own" : least;
}

int64_t resident_bytes() {
  int64_t pages = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> pages >> resident;
  return resident * sysconf(_SC_PAGESIZE);
}

double since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin).count();
}

struct TunerChoice {
  TunerCosts costs{};
  int channels = 0;
  double call_us = 0;
};

// The time of a call has in it what NCCL does before each, too: the table filled. A slow tuner is asked less often.
Result<TunerChoice> ask(const TunerPlugin& plugin, void* context, ncclFunc_t collective, size_t bytes) {
  const TunerCosts costs = costs_of(collective);
  TunerChoice choice;
  std::array<double, figures> times{};
  for (double& time : times) {
    const auto begin = std::chrono::steady_clock::now();
    int asked = 0;
    do {
      for (int i = 0; i < asked_calls / 100; ++i, ++asked) {
        choice.costs = costs;
        choice.channels = 0;
        const ncclResult_t result = plugin.choose(context, collective, bytes, choice.costs, &choice.channels);
        if (result != ncclSuccess) return plugin.error("getCollInfo", result);
      }
    } while (asked < asked_calls && since(begin) < longest_us);
    time = since(begin) / asked;
  }
  std::nth_element(times.begin(), times.begin() + figures / 2, times.end());
  choice.call_us = times[figures / 2];
  return choice;
}

Status print_choices(const TunerPlugin& plugin, void* context, const std::vector<size_t>& sizes) {
  fmt::print("#\n# {:<14}  {:>12}  {:<22}  {:>8}  {:>8}\n", "collective", "bytes", "choice", "channels", "us/call");
  for (const auto& [name, collective] : collectives) {
    for (const size_t bytes : sizes) {
      const TunerChoice choice = GYRE_TRY(ask(plugin, context, collective, bytes));
      fmt::print("  {:<14}  {:>12}  {:<22}  {:>8}  {:>8.3f}\n", name, bytes, text(choice.costs),
                 choice.channels > 0 ? fmt::to_string(choice.channels) : "NCCL's", choice.call_us);
      std::fflush(stdout);
    }
  }
  return {};
}

Status show(const TunerCommand& command) {
  if (command.nodes > command.ranks)
    return Error{Code::invalid_argument, fmt::format("--nodes {}: more than --ranks {}", command.nodes, command.ranks)};
  const auto sizes = GYRE_TRY(sizes_of(command.sizes));
  const TunerPlugin plugin = GYRE_TRY(TunerPlugin::open(command.plugin, command.table));
  const int64_t before = resident_bytes();
  const auto begin = std::chrono::steady_clock::now();
  void* context = nullptr;
  const ncclResult_t started = plugin.init(static_cast<size_t>(command.ranks), static_cast<size_t>(command.nodes), &context);
  const double init_us = since(begin);
  if (started != ncclSuccess) return plugin.error("init", started);
  fmt::print("# {}\n# tuner plugin {}, table {}: init for {} ranks on {} node{} took {:.3f} ms and {} KiB\n", command.command_line,
             plugin.name, plugin.version, command.ranks, command.nodes, command.nodes == 1 ? "" : "s", init_us / 1000,
             std::max<int64_t>(resident_bytes() - before, 0) >> 10);
  Status shown = print_choices(plugin, context, sizes);
  const ncclResult_t ended = plugin.finalize(context);
  if (shown && ended != ncclSuccess) return plugin.error("finalize", ended);
  return shown;
}

}  // namespace

int tuner(const TunerCommand& command) {
  const Status status = show(command);
  return status ? 0 : complain(status.error());
}

}  // namespace gyre::perf
