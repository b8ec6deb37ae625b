#include "transport/ucx.h"

#include <fmt/format.h>

#include "transport/ucx_worker.h"

namespace gyre::transport {

Result<std::unique_ptr<Worker>> open_ucx_worker(Slots slots, const UcxWay& way) { return ucx::UcxWorker::open(slots, way); }

std::vector<Device> ucx_devices() {
  if (!ucx::open_context({})) return {};
  return {Device{"ucx", "ucx", true}};
}

namespace {

UcxMemoryKinds ask_for_memory() {
  const auto context = ucx::open_context({});
  if (!context) return {};
  ucp_context_attr_t attributes{};
  attributes.field_mask = UCP_ATTR_FIELD_MEMORY_TYPES;
  if (ucp_context_query((*context).get(), &attributes) != UCS_OK) return {};
  const bool cuda = (attributes.memory_types & UCS_BIT(UCS_MEMORY_TYPE_CUDA)) != 0;
  return {cuda};
}

}  // namespace

UcxMemoryKinds ucx_memory() {
  static const UcxMemoryKinds kinds = ask_for_memory();
  return kinds;
}

std::string why_no_ucx() {
  const auto context = ucx::open_context({});
  return context ? "UCX can be used" : fmt::format("UCX cannot be used here: {}", context.error().what);
}

}  // namespace gyre::transport
