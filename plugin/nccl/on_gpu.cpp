#include "plugin/nccl/on_gpu.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <utility>

#include "base/file.h"
#include "base/log.h"
#include "base/text.h"
#include "plugin/nccl/cuda_driver.h"
#include "topo/nccl_xml.h"
#include "topo/this_machine.h"

namespace gyre::plugin::nccl {
namespace {

Result<topo::GpuRow> row_of(int device) {
  const std::string said = cuda::pci_address(device);
  const auto address = topo::parse_pci_address(said);
  if (!address) return Error{Code::cuda, fmt::format("CUDA's driver says that device {} is at '{}'", device, said)};
  const Result<topo::Topology>& machine = topo::this_machine();
  return topo::gpu_row(GYRE_TRY(machine), *address);
}

// As NCCL, which does so itself where gyre is beside it, and reads the number so: 0x1 is 1, and what is none is 0. Other ranks may read the
// file that is there.
void dump_this_machine(Rank rank) {
  const char* const file = std::getenv("NCCL_TOPO_DUMP_FILE");
  const char* const asked = std::getenv("NCCL_TOPO_DUMP_FILE_RANK");
  if (file == nullptr || *file == '\0') return;
  if ((asked != nullptr ? std::strtoll(asked, nullptr, 0) : 0) != rank) return;
  const Result<topo::Topology>& machine = topo::this_machine();
  if (!machine) return;  // which has been said
  if (const Status written = replace_file(file, topo::write_nccl_xml(*machine)); !written)
    log::warn("NCCL_TOPO_DUMP_FILE {}", written.error().what);
}

}  // namespace

std::optional<topo::GpuRow> where_it_is(int device, Rank rank) {
  auto row = row_of(device);
  if (row) return *std::move(row);
  log::info("rank {} does not know where its GPU is: {}", rank, row.error().what);
  return {};
}

Result<GpusOfAll> gpus_of_all(transport::Bootstrap& ranks, int device) {
  GpusOfAll made;
  std::string lacks = "its program uses no CUDA, or GYRE_DEVICE=host";
  if (cuda::present()) {
    auto opened = use_gpu(device);
    lacks = opened ? "" : opened.error().what;
    if (opened) made.make = *std::move(opened);
  }
  const auto all = GYRE_TRY(ranks.all_gather(lacks));
  if (const auto without = std::find_if(all.begin(), all.end(), [](const std::string& word) { return !word.empty(); });
      without != all.end())
    made.refusal = fmt::format("rank {}: {}", without - all.begin(), *without);
  return made;
}

Result<std::unique_ptr<OnGpu>> make_on_gpus(engine::Communicator& ranks, const MakeOnGpu& make, int device,
                                            const std::atomic<bool>* cancelled) {
  return make(GYRE_TRY(ranks.split(0, ranks.rank(), cancelled, where_it_is(device, ranks.rank()))));
}

Result<std::unique_ptr<OnGpu>> join_on_gpus(engine::Communicator& ranks, int device, const std::atomic<bool>* cancelled) {
  const auto all = GYRE_TRY(gpus_of_all(ranks.bootstrap(), device));
  dump_this_machine(ranks.rank());
  if (all.refusal.empty()) return make_on_gpus(ranks, all.make, device, cancelled);
  if (cuda::present()) log::warn("rank {}: no collectives on GPU memory: {}", ranks.rank(), all.refusal);
  return std::unique_ptr<OnGpu>();
}

}  // namespace gyre::plugin::nccl
