#include "transport/ucx_devices.h"

#include <fmt/format.h>
#include <ucp/api/ucp.h>
#include <ucs/async/async_fwd.h>
#include <uct/api/uct.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <sstream>
#include <utility>

#include "base/log.h"
#include "base/unique.h"
#include "transport/ucx_api.h"
#include "transport/ucx_library.h"
#include "transport/ucx_log.h"

namespace gyre::transport::ucx {
namespace {

using Async = Unique<ucs_async_context_t, ucs_async_context_destroy>;
using UctWorker = Unique<uct_worker, uct_worker_destroy>;
using MemoryDomain = Unique<uct_md, uct_md_close>;
using Iface = Unique<uct_iface, uct_iface_close>;

Error uct_error(const char* call, ucs_status_t status) { return {Code::system, fmt::format("{}: {}", call, ucs_status_string(status))}; }

struct RoutedLog {
  RoutedLog() { route_log(); }
  ~RoutedLog() { unroute_log(); }
  RoutedLog(const RoutedLog&) = delete;
  RoutedLog& operator=(const RoutedLog&) = delete;
};

/// By way of UCX's own reader, which knows its configuration file too.
Result<Selection> read_selection() {
  ucp_config_t* raw = nullptr;
  if (const auto status = ucp_config_read(nullptr, nullptr, &raw); status != UCS_OK) return uct_error("ucp_config_read", status);
  const Unique<ucp_config_t, ucp_config_release> config(raw);
  char* text = nullptr;
  size_t bytes = 0;
  FILE* memory = open_memstream(&text, &bytes);
  if (memory == nullptr) return Error{Code::system, "open_memstream: no memory"};
  ucp_config_print(config.get(), memory, nullptr, UCS_CONFIG_PRINT_CONFIG);
  std::fclose(memory);
  const Unique<char, std::free> owner(text);
  std::string transports, devices;
  std::istringstream lines(std::string(text, bytes));
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("UCX_TLS=")) transports = line.substr(line.find('=') + 1);
    if (line.starts_with("UCX_NET_DEVICES=")) devices = line.substr(line.find('=') + 1);
  }
  return Selection(transports, devices);
}

/// What a device is asked with.
struct Probe {
  Async async;  // first, since the worker uses it
  UctWorker worker;
};

Result<Probe> make_probe() {
  Probe probe;
  ucs_async_context_t* async = nullptr;  // polled, by nobody: no thread, no signals
  if (const auto status = ucs_async_context_create(UCS_ASYNC_MODE_POLL, &async); status != UCS_OK)
    return uct_error("ucs_async_context_create", status);
  probe.async.reset(async);
  uct_worker_h worker = nullptr;
  if (const auto status = uct_worker_create(async, UCS_THREAD_MODE_SINGLE, &worker); status != UCS_OK)
    return uct_error("uct_worker_create", status);
  probe.worker.reset(worker);
  return probe;
}

/// A UCX newer than the headers may have more to say.
struct IfaceFacts {
  uct_iface_attr_t known{};
  char more[1024]{};
};

double plausible(double value, double most) { return value > 0 && value < most ? value : 0; }

/// Opens it: the only way to learn its speed, and whether it can be used.
Result<NetMachine::UcxDevice> ask_device(uct_md_h md, const Probe& probe, const uct_tl_resource_desc_t& resource) {
  uct_iface_config_t* config = nullptr;
  auto status = uct_md_iface_config_read(md, resource.tl_name, nullptr, nullptr, &config);
  if (status != UCS_OK) return uct_error("uct_md_iface_config_read", status);
  const Unique<uct_iface_config_t, uct_config_release> config_owner(config);
  uct_iface_params_t params{};
  params.field_mask = UCT_IFACE_PARAM_FIELD_OPEN_MODE | UCT_IFACE_PARAM_FIELD_DEVICE;
  params.open_mode = UCT_IFACE_OPEN_MODE_DEVICE;
  params.mode.device.tl_name = resource.tl_name;
  params.mode.device.dev_name = resource.dev_name;
  uct_iface_h raw = nullptr;
  status = uct_iface_open(md, probe.worker.get(), &params, config, &raw);
  if (status != UCS_OK) return uct_error("uct_iface_open", status);
  const Iface iface(raw);
  IfaceFacts facts;
  status = uct_iface_query(iface.get(), &facts.known);
  if (status != UCS_OK) return uct_error("uct_iface_query", status);
  const double bandwidth = facts.known.bandwidth.dedicated + facts.known.bandwidth.shared;
  return NetMachine::UcxDevice{resource.dev_name, plausible(bandwidth, 1e15),
                               static_cast<float>(plausible(facts.known.latency.c, 1) * 1e6)};
}

/// What is learnt on the way through UCX's components, once for the networks and, where UCX_TLS forbids them all, for the host's memory.
struct Survey {
  Selection selection;
  Probe probe;
  bool memory = false;
  bool networks_forbidden = false, networks_allowed = false;  ///< by UCX_TLS
  std::vector<NetMachine::UcxDevice> found;
  std::vector<std::pair<std::string, std::string>> refused;  ///< device or component, why

  void refuse(std::string name, std::string why) {
    std::pair one(std::move(name), std::move(why));
    if (std::ranges::find(refused, one) == refused.end()) refused.push_back(std::move(one));
  }
};

/// Whether its devices read and write the memory of GPUs themselves.
void ask_for_gpu_memory(uct_md_h md, NetMachine::UcxDevice& device) {
  struct Facts {
    uct_md_attr_t known{};
    char more[1024]{};
  } facts;
  if (uct_md_query(md, &facts.known) != UCS_OK) return;
  device.gpu_memory = (facts.known.cap.reg_mem_types & UCS_BIT(UCS_MEMORY_TYPE_CUDA)) != 0;
#ifdef GYRE_UCX_KNOWS_DMABUF
  device.dmabuf = device.gpu_memory && (facts.known.cap.flags & UCT_MD_FLAG_REG_DMABUF) != 0;
#endif
}

void visit_resource(uct_md_h md, const uct_tl_resource_desc_t& resource, Survey& survey) {
  const std::string name = resource.dev_name;
  const bool allowed = survey.selection.allows_transport(resource.tl_name);
  if (!survey.memory) (allowed ? survey.networks_allowed : survey.networks_forbidden) = true;
  if (!allowed) {
    survey.refuse(name, survey.selection.transports_rule());
  } else if (!survey.memory && !survey.selection.allows_device(name)) {
    survey.refuse(name, survey.selection.devices_rule());
  } else if (survey.memory || std::ranges::find(survey.found, name, &NetMachine::UcxDevice::name) == survey.found.end()) {
    // Of a network device one transport tells enough; of the host's memory each is a device.
    auto device = ask_device(md, survey.probe, resource);
    if (device) ask_for_gpu_memory(md, *device);
    if (device) survey.found.push_back(*device);
    if (!device) survey.refuse(name, fmt::format("{}: {}", resource.tl_name, device.error().what));
  }
}

Status visit_domain(uct_component_h component, const char* name, Survey& survey) {
  uct_md_config_t* config = nullptr;
  auto status = uct_md_config_read(component, nullptr, nullptr, &config);
  if (status != UCS_OK) return uct_error("uct_md_config_read", status);
  const Unique<uct_md_config_t, uct_config_release> config_owner(config);
  uct_md_h raw = nullptr;
  status = uct_md_open(component, name, config, &raw);
  if (status != UCS_OK) return uct_error("uct_md_open", status);
  const MemoryDomain md(raw);
  uct_tl_resource_desc_t* list = nullptr;
  unsigned count = 0;
  status = uct_md_query_tl_resources(md.get(), &list, &count);
  if (status != UCS_OK) return uct_error("uct_md_query_tl_resources", status);
  const Unique<uct_tl_resource_desc_t, uct_release_tl_resource_list> list_owner(list);
  for (const auto& resource : std::span(list, count))
    if (resource.dev_type == (survey.memory ? UCT_DEVICE_TYPE_SHM : UCT_DEVICE_TYPE_NET)) visit_resource(md.get(), resource, survey);
  return {};
}

Status visit_component(uct_component_h component, Survey& survey) {
  uct_component_attr_t attributes{};
  attributes.field_mask = UCT_COMPONENT_ATTR_FIELD_MD_RESOURCE_COUNT;
  auto status = uct_component_query(component, &attributes);
  if (status != UCS_OK) return uct_error("uct_component_query", status);
  std::vector<uct_md_resource_desc_t> domains(attributes.md_resource_count);
  attributes.field_mask = UCT_COMPONENT_ATTR_FIELD_MD_RESOURCES;
  attributes.md_resources = domains.data();
  status = uct_component_query(component, &attributes);
  if (status != UCS_OK) return uct_error("uct_component_query", status);
  for (const auto& domain : domains)
    if (const auto visited = visit_domain(component, domain.md_name, survey); !visited) survey.refuse(domain.md_name, visited.error().what);
  return {};
}

Status visit_all(Survey& survey) {
  uct_component_h* components = nullptr;
  unsigned count = 0;
  const auto status = uct_query_components(&components, &count);
  if (status != UCS_OK) return uct_error("uct_query_components", status);
  const Unique<uct_component_h, uct_release_component_list> owner(components);
  for (auto* component : std::span(components, count)) GYRE_TRY(visit_component(component, survey));
  return {};
}

/// The fastest of the host's memory: UCX takes that one.
Result<std::optional<NetMachine::UcxDevice>> ask_memory(Survey& survey) {
  survey.memory = true;
  GYRE_TRY(visit_all(survey));
  const auto best = std::ranges::max_element(survey.found, {}, &NetMachine::UcxDevice::bytes_per_s);
  if (best == survey.found.end()) return std::optional<NetMachine::UcxDevice>();
  log::info("{} allows UCX no network that is here: only ranks of one host can be joined", survey.selection.transports_rule());
  return std::optional(*best);
}

}  // namespace

Result<Devices> query_devices() {
  GYRE_TRY(load_ucx());
  renew_environment();
  const RoutedLog routed;
  auto selection = GYRE_TRY(read_selection());
  if (const auto loaded = load_ucx_devices(); !loaded) {
    log::info("{}; taking the system's networks for its own", loaded.error().what);
    Devices unasked;
    unasked.selection = std::move(selection);
    return unasked;
  }
  auto probe = GYRE_TRY(make_probe());  // first: what is half made when that fails would not be unmade
  Survey survey{std::move(selection), std::move(probe), false, false, false, {}, {}};
  GYRE_TRY(visit_all(survey));
  Devices devices;
  for (const auto& [name, why] : survey.refused)
    if (std::ranges::find(survey.found, name, &NetMachine::UcxDevice::name) == survey.found.end())
      devices.unused.push_back(fmt::format("{} ({})", name, why));
  devices.networks = std::move(survey.found);
  survey.found.clear();
  if (survey.networks_forbidden && !survey.networks_allowed) devices.shared_memory = GYRE_TRY(ask_memory(survey));
  return devices;
}

}  // namespace gyre::transport::ucx
