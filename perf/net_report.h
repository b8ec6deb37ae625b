// What `gyre-perf net` prints of a net plugin: a table for people, a JSON object a line for programs.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "perf/commands.h"
#include "perf/net_measure.h"

namespace gyre::perf {

/// What holds for all rows.
struct NetFacts {
  std::string name;  ///< the plugin's
  int table;
  std::string device;
  int speed_mbit;
  Config config{};
};

struct NetRow {
  size_t bytes = 0;
  std::optional<NetBandwidth> bandwidth;
  std::optional<NetLatency> latency;
  std::optional<uint64_t> wrong;  ///< bytes; none: not checked
};

std::string net_table_head();
std::string net_table_row(const NetCommand&, const NetRow&);
/// One line "kind":"run", then one "kind":"net" for each row. Error: the file can't be written.
Status write_net_json(const std::string& path, const NetCommand&, const NetFacts&, const std::vector<NetRow>&);

}  // namespace gyre::perf
