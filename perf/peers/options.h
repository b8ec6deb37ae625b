// The command line of every peer's program. Words are the same in all of them, so that `compare` need not care which one it starts.
#pragma once
#include <CLI/CLI.hpp>

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "perf/peers/call.h"

namespace gyre::peers {

struct Options {
  int ranks = 2;  // only where we start the ranks ourselves; mpirun has its own -n
  Op op = Op::all_reduce;
  Type type = Type::float32;
  std::vector<size_t> sizes_bytes{8, size_t{64} << 20};
  double budget_ms = 60;  // timed work per size
  bool bind = false;
  bool yield = false;
};

/// A flag that takes one of `names`, numbered as T is.
template <class T, class Names>
void add_name(CLI::App& app, const std::string& flag, T& value, const Names& names, const std::string& text) {
  std::map<std::string, T> known;
  for (size_t i = 0; i < names.size(); ++i) known[names[i]] = static_cast<T>(i);
  app.add_option(flag, value, text)->transform(CLI::CheckedTransformer(known));
}

inline void add_options(CLI::App& app, Options& options) {
  app.add_option("-n,--ranks", options.ranks, "Ranks to start (programs without mpirun)")->check(CLI::Range(1, 256));
  add_name(app, "--op", options.op, op_names, "Collective");
  add_name(app, "--type", options.type, type_names, "Element type");
  app.add_option("--sizes", options.sizes_bytes, "Bytes of one rank's larger buffer, such as 8,64K,64M")
      ->delimiter(',')
      ->transform(CLI::AsSizeValue(false))
      ->check(CLI::Range(sizeof(float), size_t{1} << 33));
  app.add_option("--budget-ms", options.budget_ms, "Timed work per size");
  app.add_flag("--bind", options.bind, "Rank r stays on the r-th CPU (programs without mpirun)");
  app.add_flag("--yield", options.yield, "MPI: non-blocking calls, and give the CPU away between two polls");
}

}  // namespace gyre::peers
