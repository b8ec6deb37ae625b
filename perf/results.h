// Results read back: what a sweep wrote (report_json.h), in lines or, by versions before those, as one document; and samples of every
// algorithm (samples.h). A file is one run, or samples that were added to each other.
#pragma once
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "perf/benchmark.h"

namespace gyre::perf {

/// One way of one row, with all of its measurements.
struct Point {
  const Benchmark* benchmark = nullptr;
  int ranks = 1;
  std::string transport;
  std::string type;
  std::string redop;  ///< empty: nothing is reduced
  int root = -1;      ///< -1: there is none
  size_t bytes = 0;
  bool in_place = false;
  std::string algorithm;
  std::vector<int> grid;
  int processors = 1;      ///< of samples: that the ranks shared
  std::vector<double> us;  ///< of a call, in each cycle or round; at least one, positive
  std::optional<double> predicted_us;
  int nodes = 1;          ///< of samples: with equally many ranks each
  std::string network{};  ///< of samples: what joined ranks of different nodes

  double median_us() const;
  double least_us() const;
  double most_us() const;
  /// The algorithm with its grid: "halving_doubling 3x2".
  std::string algorithm_text() const;
  /// What joined the ranks: "shm", and of samples of several nodes "shm, between 2 nodes over tcp".
  std::string joined_by() const;
};

struct Results {
  std::string path;
  nlohmann::json about;       ///< an object: versions, command, date, machine, and of a sweep its options
  bool samples = false;       ///< of every algorithm; else a sweep, of what ran
  std::string asked;          ///< of a sweep: the algorithm, or auto
  std::vector<Point> points;  ///< of unlike calls, in the file's order; at least one

  const Benchmark& benchmark() const { return *points.front().benchmark; }  ///< of a sweep
  int ranks() const { return points.front().ranks; }
  /// "gyre 0.1.0 (commit), AMD EPYC, 2 processors, 2026-11-22T…": what of that the file says.
  std::string origin() const;
};

/// Error: the file can't be read or is no such file; the line and what is wrong with it.
Result<Results> read_results(const std::string& path);

}  // namespace gyre::perf
