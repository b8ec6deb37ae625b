#include "transport/verbs/checks.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include <cerrno>
#include <charconv>
#include <fstream>

#include "base/text.h"

namespace gyre::transport::verbs {
namespace {

constexpr const char* raise_limit =
    "ulimit -l unlimited in the shell that starts the job; for good: '* - memlock unlimited' in a file of /etc/security/limits.d, "
    "LimitMEMLOCK=infinity in the systemd unit, docker run --ulimit memlock=-1";

/// Of this process, from its capabilities in effect.
bool may_lock_all() {
  constexpr uint64_t cap_ipc_lock = uint64_t{1} << 14U;
  const std::string name = "CapEff:\t";
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (!line.starts_with(name)) continue;
    uint64_t capabilities = 0;
    std::from_chars(line.data() + name.size(), line.data() + line.size(), capabilities, 16);
    return (capabilities & cap_ipc_lock) != 0;
  }
  return false;
}

/// "/dev/infiniband/uverbs0"
std::string character_device(const std::filesystem::path& sysfs, const std::string& device) {
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(sysfs / "class/infiniband" / device / "device/infiniband_verbs", error))
    return "/dev/infiniband/" + entry.path().filename().string();
  return "/dev/infiniband/uverbs*";
}

}  // namespace

LockLimit lock_limit() {
  rlimit limit{};
  LockLimit result;
  if (::getrlimit(RLIMIT_MEMLOCK, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY) result.bytes = limit.rlim_cur;
  result.applies = result.bytes != UINT64_MAX && !may_lock_all();
  return result;
}

std::string why_not_locked(const LockLimit& limit) {
  if (!limit.applies) return "no memory is left, of the host's or of the device's tables; ulimit -l is no limit here";
  return fmt::format("the limit of locked memory is {} KiB; {}", limit.bytes / 1024, raise_limit);
}

std::string lock_warning(const LockLimit& limit) {
  // NCCL's buffers of 4 MiB for each channel and direction, with two peers; distributions allow 64 KiB or 8 MiB.
  constexpr uint64_t enough = uint64_t{256} << 20U;
  if (!limit.applies || limit.bytes >= enough) return {};
  return fmt::format(
      "the limit of locked memory is {} KiB, and memory that RDMA devices use is locked: large buffers can't be registered; {}",
      limit.bytes / 1024, raise_limit);
}

std::string why_not_opened(const std::filesystem::path& sysfs, const std::string& device, int error) {
  const std::string file = character_device(sysfs, device);
  if (error == EACCES || error == EPERM)
    return fmt::format(
        "no permission for {}: its group is often rdma (usermod -aG rdma $USER, then log in again), else chmod a+rw {}; in a "
        "container: docker run --device /dev/infiniband",
        file, file);
  if (error == ENOENT || error == ENODEV || error == ENXIO)
    return fmt::format("{} is not there: modprobe ib_uverbs; in a container: docker run --device /dev/infiniband", file);
  return fmt::format("ibv_open_device: {}", errno_text(error));
}

std::string why_not_found(const std::filesystem::path& sysfs, const std::string& device, const std::string& others) {
  std::error_code error;
  if (std::filesystem::exists(sysfs / "class/infiniband" / device, error))
    return fmt::format(
        "the system has {}, and libibverbs does not: its provider is missing (apt-get install ibverbs-providers, dnf install "
        "libibverbs), or /dev/infiniband is (modprobe ib_uverbs; in a container: docker run --device /dev/infiniband)",
        device);
  if (!others.empty()) return fmt::format("there is no RDMA device {}; there are {}", device, others);
  return fmt::format(
      "there is no RDMA device {}, nor any other; is the driver loaded? modprobe mlx5_ib for NVIDIA's; rdma link shows what there is",
      device);
}

Result<Context> open_device(const std::string& name, const std::filesystem::path& sysfs) {
  int count = 0;
  const DeviceList list(api().get_device_list(&count));
  if (!list) return Error{Code::system, fmt::format("ibv_get_device_list: {}", errno_text(errno))};
  std::string others;
  for (int i = 0; i < count; ++i) {
    ibv_device* device = list.get()[i];
    if (name != api().get_device_name(device)) {
      others += fmt::format("{}{}", others.empty() ? "" : ", ", api().get_device_name(device));
      continue;
    }
    Context context(api().open_device(device));
    if (!context) return Error{Code::system, fmt::format("{}: {}", name, why_not_opened(sysfs, name, errno))};
    return context;
  }
  return Error{Code::invalid_usage, why_not_found(sysfs, name, others)};
}

}  // namespace gyre::transport::verbs
