// What ranks say of GPUs that are not here.
#pragma once
#include <string>

#include "base/types.h"
#include "topo/gpu_row.h"

namespace gyre::test {

/// GPU number `own` of a machine where NVLinks join each to the ones so many further and before, one each; with a port of its own.
inline topo::GpuRow row_of_circle(int own, int gpus, int step) {
  const auto name = [](int gpu) { return "0000:" + std::to_string(10 + gpu) + ":00.0"; };
  topo::GpuRow row{name(own), 0, {}, {"mlx5_" + std::to_string(own) + ":1"}};
  for (int other = 0; other < gpus; ++other) {
    const bool joined = (own + step) % gpus == other || (other + step) % gpus == own;
    if (other != own) row.others.push_back({name(other), topo::Distance::host_bridge, joined ? 1 : 0});
  }
  return row;
}

}  // namespace gyre::test
