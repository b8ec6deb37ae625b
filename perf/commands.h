// The subcommands of gyre-perf; each returns its exit code.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "base/config.h"
#include "perf/net_measure.h"
#include "perf/split.h"
#include "perf/sweep.h"

namespace gyre::perf {

struct SweepCommand {
  SweepOptions sweep;
  std::optional<int> ranks;            ///< --ranks; none: a launcher's, or 2 local ones
  std::optional<int> threads;          ///< -t
  std::optional<int> gpus;             ///< -g; with -t the local ranks to start
  std::string json;                    ///< --json FILE; empty: none
  bool explain = false;                ///< --explain: also what each size was chosen from
  bool timestamps = false;             ///< -S
  bool memory = false;                 ///< -M: the most memory that a rank had
  std::optional<double> wanted_busbw;  ///< NCCL_TESTS_MIN_BW, in GB/s: an average far below is exit code 4
  std::optional<Split> split;          ///< NCCL_TESTS_SPLIT
  int timeout_s = 0;                   ///< -T: a row that takes longer ends the job; 0: none does
  std::vector<std::string> notes;      ///< about flags that were taken and do nothing here
  std::string command_line;
};
/// Runs a sweep, with ranks of our own or as one of a launcher's.
int run_sweep(SweepCommand, const Config&);

struct ModelCommand {
  Collective collective = Collective::all_reduce;
  int ranks = 8;
  int nodes = 1;
  Rank root = 0;
  uint32_t channels = 2;
  std::string machine = "gpu_cluster";  ///< of the constants
  std::string constants;                ///< --constants FILE; empty: those compiled in
  size_t min_bytes = 8;
  size_t max_bytes = size_t{1} << 30;
  size_t step_factor = 4;
  std::optional<size_t> explain_bytes;  ///< every candidate for one size, in place of the best for many
  std::string file;                     ///< for the constants with the simulated times
  bool simulate = false;                ///< in place of where the time goes: the choice on the simulator beside the best there
};
/// Predicts what a machine that need not be here would choose.
int model(const ModelCommand&, const Config&);

struct CrossoversCommand {
  std::string machine = "dgx_h100";
  int nodes = 1;
  std::optional<int> ranks;  ///< none: all GPUs of the nodes
  std::string constants;     ///< --constants FILE; empty: those compiled in
  std::string rules;         ///< --rules FILE; empty: none
  std::string profile;       ///< --profile FILE; empty: none
  std::string command_line;
};
/// Predicts at which sizes NCCL's rings and trees are best with which protocol, by gyre's prices and by NCCL's own defaults.
int crossovers(const CrossoversCommand&);

struct MeasureCommand {
  SweepOptions sizes;
  std::optional<int> ranks;  ///< --ranks; none: a launcher's, or 2 local ones
  std::string transport;     ///< --transport; empty: shm between local ranks, and a launcher's as GYRE_TRANSPORT says
  std::vector<Collective> collectives{Collective::all_reduce};
  int rounds = 5;
  std::string file;
  std::string command_line;
};
/// Times every algorithm of the collectives at every size, by messages, in rounds, and adds the times to a file (samples.h): with ranks of
/// our own, or as one of a launcher's.
int measure(const MeasureCommand&, const Config&);
/// The same with ranks of our own, whoever started this process.
int measure_here(const MeasureCommand&, const Config&);

struct FitCommand {
  std::vector<std::string> samples;
  std::string file;               ///< of the constants
  bool for_this_machine = false;  ///< on no other they are taken, and the samples' times are kept for the choice to go by
  std::string command_line;
};
/// Fits the constants of this host to samples, and writes them beside the others.
int fit(const FitCommand&, const Config&);

struct TuneCommand {
  std::vector<int> ranks{2, 4};
  std::vector<std::string> transports{"shm", "tcp"};
  std::vector<Collective> collectives{Collective::all_reduce, Collective::reduce_scatter, Collective::all_gather, Collective::broadcast,
                                      Collective::reduce};
  SweepOptions sizes;
  int rounds = 15;
  std::string file;  ///< of the constants; samples go to the same with .samples.jsonl added
  std::string command_line;
};
/// Measures this host and fits its constants: what measure, fit and regret do, one after the other.
int tune(const TuneCommand&, const Config&);

struct TuneNcclCommand {
  std::string profile;
  int ranks_per_node = 1, nodes = 1;
  std::optional<Collective> collective;  ///< --collective; none: as the command's words say
  int rounds = 5;
  int timeout_s = 600;             ///< of one run
  std::string library;             ///< libgyre-nccl.so; empty: only NCCL is timed
  std::vector<std::string> words;  ///< of the command, which prints what nccl-tests prints
  std::string command_line;
};
/// Times NCCL's algorithms and protocols by a user's nccl-tests, and puts the best into a profile, for NCCL's tuner and gyre beside it.
int tune_nccl(const TuneNcclCommand&);

struct RegretCommand {
  std::vector<std::string> samples;
  std::string constants;  ///< empty: those compiled in
  std::string json;       ///< empty: none
  std::string command_line;
};
/// Compares what is chosen, and what the rule of thumb would choose, with the best of the samples.
int regret(const RegretCommand&, const Config&);

struct CompareCommand {
  std::string before;
  std::string after;
  std::optional<double> fail_below;
};
/// Compares two results of the same calls, point by point.
int compare(const CompareCommand&, const Config&);

struct ReportCommand {
  std::vector<std::string> files;
  std::string output;     ///< .html or .svg
  std::string constants;  ///< for the predictions of measured samples; empty: those compiled in
};
/// Draws results: a page, or the pictures alone.
int report(const ReportCommand&, const Config&);

struct TopoCommand {
  std::string root;  ///< empty: this machine
  std::string xml;   ///< empty: none
  size_t host = 1;   ///< of those in it
  std::string dump;  ///< empty: no file is written
  std::string svg;   ///< likewise
  int nodes = 1;     ///< machines like it that channels go through
};
/// Shows the hardware of a machine, and the channels over it.
int show_topology(const TopoCommand&, const Config&);

struct NetCommand {
  std::string plugin;        ///< a path, or a name for the system's search
  std::optional<int> table;  ///< --version N; none: the newest that the plugin has
  int device = 0;
  SweepOptions sizes;
  NetSetting setting;
  bool bandwidth = true, latency = true;
  bool spin = false;     ///< --spin: never gives the processor away while nothing moves
  bool verbose = false;  ///< --verbose: what the plugin logs at INFO too
  std::string json;      ///< --json FILE; empty: none
  std::string command_line;
};
/// Measures any NCCL net plugin between two ranks.
int net(const NetCommand&, const Config&);

struct TunerCommand {
  std::string plugin;        ///< a path, or a name for the system's search
  std::optional<int> table;  ///< --version N; none: the newest that the plugin has
  int64_t ranks = 8, nodes = 1;
  SweepOptions sizes;
  std::string command_line;
};
/// Asks any NCCL tuner plugin what it would choose, and measures what that costs.
int tuner(const TunerCommand&);

/// Prints "gyre-perf: …" to stderr; returns the exit code of an error.
int complain(const Error&);
/// This exit code; or, where what was printed is lost (a full disk), that of an error, which it says.
int printed(int code);

}  // namespace gyre::perf
