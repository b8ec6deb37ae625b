#include "topo/nvml.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "base/log.h"

namespace gyre::topo {
namespace {

// NVML's interface, as far as it is used. What a link leads to has been told since driver 470, the speed of each and C2C since 525; the
// rest is older.
using Device = struct nvmlDevice_st*;
struct NvmlPci {
  char legacy_id[16];
  unsigned domain, bus, device, ids, subsystem;
  char id[32];  // "00000000:1B:00.0"
};
struct NvmlField {
  unsigned id;
  unsigned scope;  // the link's number
  long long timestamp, latency_us;
  int type;
  int result;
  uint64_t value;  // a union, of which the type says what it holds
};
static_assert(sizeof(NvmlField) == 40);
enum FieldId : unsigned { nvlink_common_mbytes = 90, nvlink_mbytes = 164, c2c_count = 170, c2c_up = 171, c2c_mbytes = 172 };
enum FieldType : int { unsigned_int = 1, unsigned_long = 2, unsigned_long_long = 3 };
constexpr int success = 0;
constexpr unsigned most_links = 18;  // of a GPU
constexpr unsigned most_c2c_links = 64;
enum RemoteType : int { to_gpu = 0, to_processor = 1, to_switch = 2 };
constexpr uint32_t pci_npu = 0x068001;  // IBM's processors

struct Close {
  void operator()(void* library) const { ::dlclose(library); }
};

/// The library's functions; what it lacks stays null.
struct Nvml {
  std::unique_ptr<void, Close> library;
  int (*init)() = nullptr;
  int (*shutdown)() = nullptr;
  const char* (*error_string)(int) = nullptr;
  int (*count)(unsigned*) = nullptr;
  int (*device)(unsigned, Device*) = nullptr;
  int (*pci)(Device, NvmlPci*) = nullptr;
  int (*capability)(Device, int*, int*) = nullptr;
  int (*link_state)(Device, unsigned, int*) = nullptr;
  int (*link_end)(Device, unsigned, NvmlPci*) = nullptr;
  int (*link_type)(Device, unsigned, int*) = nullptr;
  int (*fields)(Device, int, NvmlField*) = nullptr;

  template <class Function>
  void find(const char* name, Function& function) const {
    function = reinterpret_cast<Function>(::dlsym(library.get(), name));
  }
  /// 0 where the driver, or the GPU, has none.
  uint64_t field(Device of, FieldId id, unsigned link = 0) const {
    NvmlField asked{id, link, 0, 0, 0, success, 0};
    if (fields == nullptr || fields(of, 1, &asked) != success || asked.result != success) return 0;
    if (asked.type == unsigned_int) return static_cast<uint32_t>(asked.value);
    return asked.type == unsigned_long || asked.type == unsigned_long_long ? asked.value : 0;
  }
  Status check(const char* function, int result) const {
    if (result == success) return {};
    const char* said = error_string != nullptr ? error_string(result) : nullptr;
    return Error{Code::system, fmt::format("{}: {}", function, said != nullptr ? said : fmt::format("error {}", result))};
  }
};

Result<Nvml> opened(std::unique_ptr<void, Close> library, const std::string& name) {
  Nvml nvml;
  nvml.library = std::move(library);
  nvml.find("nvmlInit_v2", nvml.init);
  nvml.find("nvmlShutdown", nvml.shutdown);
  nvml.find("nvmlErrorString", nvml.error_string);
  nvml.find("nvmlDeviceGetCount_v2", nvml.count);
  nvml.find("nvmlDeviceGetHandleByIndex_v2", nvml.device);
  nvml.find("nvmlDeviceGetPciInfo_v3", nvml.pci);
  nvml.find("nvmlDeviceGetCudaComputeCapability", nvml.capability);
  nvml.find("nvmlDeviceGetNvLinkState", nvml.link_state);
  nvml.find("nvmlDeviceGetNvLinkRemotePciInfo_v2", nvml.link_end);
  nvml.find("nvmlDeviceGetNvLinkRemoteDeviceType", nvml.link_type);
  nvml.find("nvmlDeviceGetFieldValues", nvml.fields);
  if (nvml.init == nullptr || nvml.shutdown == nullptr || nvml.count == nullptr || nvml.device == nullptr || nvml.pci == nullptr)
    return Error{Code::system, fmt::format("{}: not NVML, or one of before 2018", name)};
  return nvml;
}

std::optional<PciAddress> address_of(const NvmlPci& pci) {
  return parse_pci_address(std::string_view(pci.id, std::find(std::begin(pci.id), std::end(pci.id), '\0')));
}

// A virtual machine shows no switch: then the link's end has no address, or an odd one, and NVML may not say what it is.
NvLink link_of(const Nvml& nvml, Device device, unsigned number) {
  NvLink link;
  link.links = 1;
  const uint64_t own = nvml.field(device, nvlink_mbytes, number);
  link.bytes_per_s = 1e6 * static_cast<double>(own > 0 ? own : nvml.field(device, nvlink_common_mbytes));
  NvmlPci end{};
  if (nvml.link_end != nullptr && nvml.link_end(device, number, &end) == success) link.target = address_of(end);
  int type = to_switch;
  if (nvml.link_type == nullptr || nvml.link_type(device, number, &type) != success) return link;
  if (type == to_gpu) link.target_class = pci_gpu;
  if (type == to_switch) link.target_class = pci_nvswitch;
  if (type == to_processor) link.target_class = pci_npu;
  return link;
}

void add_links(const Nvml& nvml, Device device, Gpu& gpu) {
  for (unsigned number = 0; number < most_links && nvml.link_state != nullptr; ++number) {
    int up = 0;
    if (nvml.link_state(device, number, &up) != success || up == 0) continue;
    const NvLink link = link_of(nvml, device, number);
    const auto same =
        std::find_if(gpu.nvlinks.begin(), gpu.nvlinks.end(), [&](const NvLink& other) { return other.target == link.target; });
    if (same == gpu.nvlinks.end()) {
      gpu.nvlinks.push_back(link);
      continue;
    }
    ++same->links;
    same->bytes_per_s = std::min(same->bytes_per_s, link.bytes_per_s);
  }
}

// As NCCL's topology files have them: those that are up, which are as fast as each other.
void add_c2c(const Nvml& nvml, Device device, Gpu& gpu) {
  const uint64_t links = std::min<uint64_t>(nvml.field(device, c2c_count), most_c2c_links);
  for (unsigned number = 0; number < links; ++number) {
    if (nvml.field(device, c2c_up, number) != 1) continue;
    ++gpu.c2c_links;
    gpu.c2c_bytes_per_s = 1e6 * static_cast<double>(nvml.field(device, c2c_mbytes, number));
  }
}

Result<std::vector<DriverGpu>> read(const Nvml& nvml) {
  unsigned count = 0;
  GYRE_TRY(nvml.check("nvmlDeviceGetCount_v2", nvml.count(&count)));
  std::vector<DriverGpu> all;
  for (unsigned index = 0; index < count; ++index) {
    Device device = nullptr;
    NvmlPci pci{};
    Status answered = nvml.check("nvmlDeviceGetHandleByIndex_v2", nvml.device(index, &device));
    if (answered) answered = nvml.check("nvmlDeviceGetPciInfo_v3", nvml.pci(device, &pci));
    const auto address = address_of(pci);
    if (!answered || !address) {  // one that is lost, or not this user's, costs nothing of the others
      log::warn("GPU {}: {}", index, answered ? "nvmlDeviceGetPciInfo_v3: no PCI address" : answered.error().what);
      continue;
    }
    Gpu gpu;
    gpu.index = static_cast<int>(index);
    int major = 0, minor = 0;
    if (nvml.capability != nullptr && nvml.capability(device, &major, &minor) == success) gpu.compute_capability = 10 * major + minor;
    add_links(nvml, device, gpu);
    add_c2c(nvml, device, gpu);
    all.push_back({*address, std::move(gpu)});
  }
  return all;
}

}  // namespace

Result<std::vector<DriverGpu>> read_nvml(const std::string& library) {
  std::unique_ptr<void, Close> loaded(::dlopen(library.c_str(), RTLD_LAZY | RTLD_LOCAL));
  if (loaded == nullptr) return std::vector<DriverGpu>();
  const Nvml nvml = GYRE_TRY(opened(std::move(loaded), library));
  GYRE_TRY(nvml.check("nvmlInit_v2", nvml.init()));
  auto gpus = read(nvml);
  nvml.shutdown();
  return gpus;
}

}  // namespace gyre::topo
