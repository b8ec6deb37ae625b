// The subcommand plan: shows a schedule, its proof and its simulation.
#pragma once
#include <optional>
#include <string>

#include "base/config.h"
#include "topo/shape.h"

namespace gyre::perf {

struct PlanCommand {
  std::string family;
  topo::Shape shape{Collective::all_reduce, 2, 1, 0, {}};
  bool unfused = false;
  std::string format = "table";  ///< or dot, svg
  size_t bytes = 1 << 20;        ///< of the larger of input and output, as nccl-tests counts them
  uint32_t slices = 1;           ///< of each chunk, in the simulation
  int nodes = 1;
  std::string file;  ///< empty: to the standard output
};
/// Returns the exit code.
int plan(PlanCommand, const Config&);

}  // namespace gyre::perf
