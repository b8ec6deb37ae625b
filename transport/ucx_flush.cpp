#include "transport/ucx_flush.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

namespace gyre::transport::ucx {
namespace {

Error flush_error(const char* call, ucs_status_t status) {
  return {Code::system, fmt::format("{}, for flushes of GPU memory: {}", call, ucs_status_string(status))};
}

Result<ucp_rkey_h> unpack_key(ucp_context_h context, ucp_ep_h endpoint, ucp_mem_h memory) {
  void* packed = nullptr;
  size_t bytes = 0;
  if (const auto status = ucp_rkey_pack(context, memory, &packed, &bytes); status != UCS_OK) return flush_error("ucp_rkey_pack", status);
  ucp_rkey_h key = nullptr;
  const auto status = ucp_ep_rkey_unpack(endpoint, packed, &key);
  ucp_rkey_buffer_release(packed);
  if (status != UCS_OK) return flush_error("ucp_ep_rkey_unpack", status);
  return key;
}

}  // namespace

Result<std::unique_ptr<Flushes>> Flushes::open(const std::vector<std::string>& devices, const std::string& transports) {
  std::unique_ptr<Flushes> flushes(new Flushes);
  for (const auto& device : devices) GYRE_TRY(flushes->open_device(device, transports));
  return flushes;
}

Status Flushes::open_device(const std::string& name, const std::string& transports) {
  UcxWay way;
  way.devices = name;
  way.transports = transports;
  Device& device = devices_.emplace_back(Device{GYRE_TRY(open_context(way, UCP_FEATURE_RMA))});
  ucp_worker_params_t parameters{};
  parameters.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE;
  parameters.thread_mode = UCS_THREAD_MODE_SERIALIZED;
  ucp_worker_h worker = nullptr;
  if (const auto status = ucp_worker_create(device.context.get(), &parameters, &worker); status != UCS_OK)
    return flush_error("ucp_worker_create", status);
  device.worker.reset(worker);

  ucp_address_t* address = nullptr;
  size_t bytes = 0;
  if (const auto status = ucp_worker_get_address(worker, &address, &bytes); status != UCS_OK)
    return flush_error("ucp_worker_get_address", status);
  ucp_ep_params_t to_itself{};
  to_itself.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS;
  to_itself.address = address;
  const auto status = ucp_ep_create(worker, &to_itself, &device.endpoint);
  ucp_worker_release_address(worker, address);
  if (status != UCS_OK) return flush_error(fmt::format("ucp_ep_create from {} to itself", name).c_str(), status);
  return {};
}

Flushes::~Flushes() {
  for (Device& device : devices_) {
    if (!device.endpoint) continue;
    ucp_request_param_t parameters{};
    auto* closing = ucp_ep_close_nbx(device.endpoint, &parameters);
    if (!UCS_PTR_IS_PTR(closing)) continue;
    // The other end is this process, so this is short; a device that fails must not hold up the end.
    const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(1);
    while (ucp_request_check_status(closing) == UCS_INPROGRESS && std::chrono::steady_clock::now() < limit)
      ucp_worker_progress(device.worker.get());
    ucp_request_free(closing);
  }
}

Result<std::unique_ptr<Flushes::Region>> Flushes::add(std::span<std::byte> memory, MemoryKind kind) {
  auto region = std::make_unique<Region>();
  for (Device& device : devices_) region->keys.push_back({GYRE_TRY(map_memory(device.context.get(), memory, kind))});
  region->end = memory.data() + memory.size();
  return region;
}

Result<Request*> Flushes::start(Region& region, const std::byte* data) {
  const auto unused = std::find_if(flushes_.begin(), flushes_.end(), [](const Flush& flush) { return !flush.in_use; });
  if (unused == flushes_.end()) return Error{Code::internal, fmt::format("{} flushes of GPU memory are under way", flushes_.size())};
  Flush& flush = *unused;
  flush.done = false;
  flush.failure = nullptr;
  flush.reads.clear();
  const auto bytes = std::min(target_.size(), static_cast<size_t>(region.end - data));
  for (size_t i = 0; i < devices_.size(); ++i) {
    Device& device = devices_[i];
    auto& key = region.keys[i];
    if (!key.key) key.key = GYRE_TRY(unpack_key(device.context.get(), device.endpoint, key.memory.get()));
    auto* read = device.requests->get(device.endpoint, std::span(target_).first(bytes), reinterpret_cast<uintptr_t>(data), key.key);
    if (!read) return Error{Code::internal, "no request left for a flush of GPU memory"};
    flush.reads.push_back(read);
  }
  flush.in_use = true;
  under_way_.push_back(&flush);
  return &flush;
}

void Flushes::progress() {
  for (Device& device : devices_) ucp_worker_progress(device.worker.get());
  std::erase_if(under_way_, [&](Flush* flush) {
    if (!std::all_of(flush->reads.begin(), flush->reads.end(), [](const Request* read) { return read->done; })) return false;
    for (size_t i = 0; i < devices_.size(); ++i) {
      if (flush->reads[i]->failure) flush->failure = flush->reads[i]->failure;
      devices_[i].requests->release(flush->reads[i]);
    }
    return flush->done = true;
  });
}

void Flushes::release(Request* request) { static_cast<Flush*>(request)->in_use = false; }

}  // namespace gyre::transport::ucx
