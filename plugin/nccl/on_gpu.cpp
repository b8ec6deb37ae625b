#include "plugin/nccl/on_gpu.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "base/log.h"
#include "plugin/nccl/cuda_driver.h"
#include "topo/this_machine.h"

namespace gyre::plugin::nccl {
namespace {

Result<topo::GpuRow> row_of(int device) {
  const std::string said = cuda::pci_address(device);
  const auto address = topo::parse_pci_address(said);
  if (!address) return Error{Code::cuda, fmt::format("CUDA's driver says that device {} is at '{}'", device, said)};
  return topo::gpu_row(GYRE_TRY(topo::this_machine()), *address);
}

// Nothing: its messages do without what could be known of their ways.
std::optional<topo::GpuRow> where_it_is(int device, Rank rank) {
  auto row = row_of(device);
  if (row) return *std::move(row);
  log::info("rank {} does not know where its GPU is: {}", rank, row.error().what);
  return {};
}

}  // namespace

Result<std::unique_ptr<OnGpu>> join_on_gpus(engine::Communicator& ranks, int device, const std::atomic<bool>* cancelled) {
  MakeOnGpu make;
  std::string lacks = "its program uses no CUDA, or GYRE_DEVICE=host";
  if (cuda::present()) {
    auto opened = use_gpu(device);
    lacks = opened ? "" : opened.error().what;
    if (opened) make = *std::move(opened);
  }
  const auto all = GYRE_TRY(ranks.bootstrap().all_gather(lacks));
  if (const auto without = std::find_if(all.begin(), all.end(), [](const std::string& word) { return !word.empty(); });
      without != all.end()) {
    if (cuda::present()) log::warn("rank {}: no collectives on GPU memory: rank {}: {}", ranks.rank(), without - all.begin(), *without);
    return std::unique_ptr<OnGpu>();
  }
  auto second = GYRE_TRY(ranks.split(0, ranks.rank(), cancelled, where_it_is(device, ranks.rank())));
  return make(std::move(second));
}

}  // namespace gyre::plugin::nccl
