// Every GYRE_* option, in one table: name, default, one sentence. Read once, then a constant value that is passed along. A wrong value
// or an unknown GYRE_ name is an error that says what would be right: a typing error must not silently change a job.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace gyre {

template <class T>
struct Option {
  std::string_view name;
  T value;
  std::string_view sentence;
  std::vector<std::string_view> choices{};  ///< of words: empty = any text
  T least{};                                ///< of numbers: the range, and what they must be a multiple of
  T most{};
  T multiple{};
  bool list = false;  ///< of words: any of the choices, with commas
  std::string_view origin = "default";

  const T& operator*() const { return value; }
};
using Word = Option<std::string>;
using Number = Option<size_t>;

struct Config {
  Word transport{
      "GYRE_TRANSPORT",
      "auto",
      "How ranks are joined; auto: shm inside a host; between hosts verbs, where both have it, else tcp; ucx instead of tcp where both "
      "have UCX_TLS or UCX_NET_DEVICES set, RDMA devices that verbs cannot use, or no TCP.",
      {"auto", "shm", "tcp", "ucx", "verbs", "loopback"}};
  Word algorithm{"GYRE_ALGORITHM",
                 "auto",
                 "Schedule of every collective that it has; auto: by size.",
                 {"auto", "naive", "ring", "tree", "double_tree", "halving_doubling", "bucket", "hierarchical", "leaders", "one_shot",
                  "two_shot", "pat", "chained_tree"}};
  Word grid{"GYRE_GRID", "",
            "Extents of the grid of ranks for the algorithm named, such as 4x2, the fastest first; default: ranks of a host, hosts."};
  Word constants{"GYRE_CONSTANTS", "", "File of what things cost, by which auto chooses; default: those compiled in."};
  Number slot_bytes{"GYRE_SLOT_BYTES",
                    64 << 10,
                    "Largest piece sent at once, in bytes; a multiple of 4 KiB; over tcp 256K where nothing is set.",
                    {},
                    4 << 10,
                    64 << 20,
                    4 << 10};
  Number slots{"GYRE_SLOTS", 8, "Pieces under way on one connection in one direction; over tcp 4 where nothing is set.", {}, 2, 256};
  Number memory_bytes{"GYRE_MEMORY_BYTES",
                      0,
                      "Most bytes of memory that a communicator takes on this rank, for slots, board and scratch; 0: no bound; the least "
                      "of all ranks counts.",
                      {},
                      0,
                      size_t{1} << 60};
  Number channels{
      "GYRE_CHANNELS", 0, "Channels that share a collective, each with connections of its own; 0: as the algorithm needs.", {}, 0, 16};
  Word numerics{
      "GYRE_NUMERICS",
      "default",
      "What the bits of a reduction of floats depend on; default: inputs, job and options; ordered: the ranks' inputs, and nothing else.",
      {"default", "ordered"}};
  Number attach{
      "GYRE_ATTACH",
      1,
      "1: ranks of a host, two or such that share processors, read large blocks straight from each other's buffers, where the kernel lets "
      "them and their calls find that no slower than copies; 2, on all: whatever calls find; 0, on one: they do not.",
      {},
      0,
      2};
  Word wait{
      "GYRE_WAIT",
      "auto",
      "How a rank waits for others: spin: keeps its processor; yield: lets others have it; sleep: until it is woken; auto: one after the "
      "other.",
      {"auto", "spin", "yield", "sleep"}};
  Word log{"GYRE_LOG", "warn", "What is logged: error, warn, info or debug.", {"error", "warn", "info", "debug"}};
  Number explain{"GYRE_EXPLAIN",
                 0,
                 "1: rank 0, or every rank's tuner, logs what each kind of call could run and why it runs what it does; 0: not.",
                 {},
                 0,
                 1};
  Word nccl{
      "GYRE_NCCL", "auto",
      "Who answers the calls of a program under libgyre-nccl.so; auto: NCCL where there is one, else gyre; off: gyre; a path: that NCCL."};
  Word device{"GYRE_DEVICE",
              "auto",
              "Where the buffers of such calls lie; auto: as CUDA's driver says, where the program has loaded it; host: in host memory.",
              {"auto", "host"}};
  Word collectives{
      "GYRE_COLLECTIVES",
      "",
      "Collectives, with commas, that gyre takes over from NCCL under libgyre-nccl.so; empty: none; default: what a profile gives it.",
      {"all_reduce", "reduce_scatter", "all_gather", "broadcast", "reduce", "alltoall", "gather", "scatter"},
      {},
      {},
      {},
      true};
  Number min_bytes{"GYRE_MIN_BYTES", 0, "Least bytes (count times element) of a call that gyre takes over from NCCL.", {}, 0,
                   size_t{1} << 60};
  Number max_bytes{"GYRE_MAX_BYTES", 0, "Most bytes of such a call; 0: no bound.", {}, 0, size_t{1} << 60};
  Word hostid{"GYRE_HOSTID", "", "Ranks with equal text share a host; default: boot id and network namespace."};
  Word rank{"GYRE_RANK", "", "This process's rank, where no launcher says it; with GYRE_SIZE and GYRE_ROOT."};
  Word size{"GYRE_SIZE", "", "Number of ranks, where no launcher says it."};
  Word root{"GYRE_ROOT", "", "host:port where rank 0 listens for the others; also overrides the launcher's address."};
  Number peer_timeout{"GYRE_PEER_TIMEOUT", 5, "Seconds after which a host that does not answer the kernel is lost.", {}, 2, 86400};
  Word stats{"GYRE_STATS", "",
             "File for the net plugin's counters, as JSON, and as Prometheus text in FILE.prom; %h: host, %p: process; without %p, .PID is "
             "added."};
  Word tuner_file{
      "GYRE_TUNER_FILE", "",
      "What NCCL chooses by, and gyre beside it: a profile of gyre-perf tune_nccl or crossovers, or rules, in the CSV of NVIDIA's example "
      "tuner."};
  Number stats_seconds{"GYRE_STATS_SECONDS", 0, "Seconds between two writings of GYRE_STATS; 0: at the end only.", {}, 0, 86400};
  Word fallback{"GYRE_FALLBACK",
                "none",
                "What a connection over verbs does when its last path has failed: none: it ends; tcp: it goes on by TCP.",
                {"none", "tcp"}};
  Number ib_confirm{
      "GYRE_IB_CONFIRM", 0, "1: a send over verbs is done on the receiver's word only; 0: when the receiver's device has it.", {}, 0, 1};
  Number pinned_bytes{"GYRE_PINNED_BYTES", 0, "Most bytes that are registered with RDMA devices at a time; 0: no bound.", {}, 0,
                      size_t{1} << 60};
  Number deadline{"GYRE_DEADLINE", 0, "Seconds after which it is an error that nothing has moved in a collective; 0: none.", {}, 0, 86400};
  Number timeout{"GYRE_TIMEOUT", 30, "Seconds that ranks wait for each other at the start.", {}, 1, 86400};

  /// Options set in this process's environment over the defaults.
  static Result<Config> from_environment();
  /// The same from "NAME=value" texts (others than GYRE_* are passed over).
  static Result<Config> from(const std::vector<std::string>& environment);
  /// Sets one option as the environment would; `origin` says where the value came from, such as "--transport".
  Status set(std::string_view name, std::string_view value, std::string_view origin);

  /// The table as text: name, value, where it came from, sentence.
  std::string table() const;

  template <class Visit>
  void each(Visit&& visit) {
    for_each(*this, visit);
  }
  template <class Visit>
  void each(Visit&& visit) const {
    for_each(*this, visit);
  }

 private:
  template <class Self, class Visit>
  static void for_each(Self& self, Visit& visit) {
    visit(self.transport), visit(self.algorithm), visit(self.grid), visit(self.constants), visit(self.slot_bytes), visit(self.slots),
        visit(self.memory_bytes), visit(self.channels), visit(self.numerics), visit(self.attach), visit(self.wait), visit(self.log),
        visit(self.explain);
    visit(self.hostid), visit(self.rank), visit(self.size), visit(self.root), visit(self.timeout), visit(self.deadline),
        visit(self.peer_timeout), visit(self.stats), visit(self.stats_seconds), visit(self.fallback), visit(self.ib_confirm),
        visit(self.pinned_bytes), visit(self.tuner_file), visit(self.nccl), visit(self.device), visit(self.collectives),
        visit(self.min_bytes), visit(self.max_bytes);
  }
};

}  // namespace gyre
