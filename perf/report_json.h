// A sweep's output for programs: a JSON object per line. The first says what holds for all rows, so that they can be had again: all that
// about_run.h has, ranks and options. Then a line for each row as soon as it is there, so that a sweep that is cut off leaves what it had;
// the last has the key "end". results.h reads such files.
#pragma once
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "perf/report.h"
#include "perf/split.h"

namespace gyre::perf {

/// What holds for all rows.
struct RunFacts {
  std::string command;
  int ranks = 1;
  std::vector<std::string> transports;  ///< to each rank
  std::string algorithm;                ///< that was asked for: a name, or auto
  Groups groups{};                      ///< where ranks are split; the rows are of the first rank's
  Config config{};
};

/// How a sweep ended.
struct SweepEnd {
  Totals totals;
  bool limited = false;  ///< by the time limit, before its last row
  double seconds = 0;    ///< that it took
  std::optional<double> wanted_busbw{};
};

class JsonLines {
 public:
  /// Error: the file can't be written.
  static Result<JsonLines> open(const std::string& path, const RunFacts&, const SweepOptions&);
  /// Errors: as open.
  Status row(const Row&);
  Status end(const SweepEnd&);

 private:
  explicit JsonLines(const std::string& path) : path_(path), file_(path) {}
  Status put(const nlohmann::json&);

  std::string path_;
  std::ofstream file_;
};

}  // namespace gyre::perf
