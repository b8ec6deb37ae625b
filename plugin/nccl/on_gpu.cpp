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
  if (!machine) log::warn("no map of this machine: {}", machine.error().what);
  return topo::gpu_row(GYRE_TRY(machine), *address);
}

// Nothing: its messages do without what could be known of their ways.
std::optional<topo::GpuRow> where_it_is(int device, Rank rank) {
  auto row = row_of(device);
  if (row) return *std::move(row);
  log::info("rank {} does not know where its GPU is: {}", rank, row.error().what);
  return {};
}

// As NCCL, which does so itself where gyre is beside it.
void dump_this_machine(Rank rank) {
  const char* const file = std::getenv("NCCL_TOPO_DUMP_FILE");
  const char* const asked = std::getenv("NCCL_TOPO_DUMP_FILE_RANK");
  if (file == nullptr || *file == '\0') return;
  if (parse_number(asked != nullptr ? asked : "").value_or(0) != static_cast<uint64_t>(rank)) return;
  const Result<topo::Topology>& machine = topo::this_machine();
  const Status written = machine ? write_file("NCCL_TOPO_DUMP_FILE", file, topo::write_nccl_xml(*machine)) : Status(machine.error());
  if (!written) log::warn("{}", written.error().what);
}

}  // namespace

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
