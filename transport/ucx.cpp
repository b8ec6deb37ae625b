#include "transport/ucx.h"

#include <fmt/format.h>

#include "transport/ucx_worker.h"

namespace gyre::transport {

Result<std::unique_ptr<Worker>> open_ucx_worker(Slots slots) { return ucx::UcxWorker::open(slots); }

std::vector<Device> ucx_devices() {
  if (!ucx::open_context()) return {};
  return {Device{"ucx", "ucx", true}};
}

std::string why_no_ucx() {
  const auto context = ucx::open_context();
  return context ? "UCX can be used" : fmt::format("UCX cannot be used here: {}", context.error().what);
}

}  // namespace gyre::transport
