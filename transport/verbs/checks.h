// What keeps a machine from using its RDMA devices, found when they are opened, with the command that mends it.
#pragma once
#include <cstdint>
#include <filesystem>
#include <string>

#include "base/result.h"
#include "transport/verbs/api.h"

namespace gyre::transport::verbs {

/// Registered memory is locked memory, and how much of that a process may have is limited, for whoever lacks the capability CAP_IPC_LOCK.
struct LockLimit {
  uint64_t bytes = UINT64_MAX;  ///< UINT64_MAX: unlimited
  bool applies = true;
};
LockLimit lock_limit();
/// Why a registration found no memory.
std::string why_not_locked(const LockLimit&);
/// Empty: there is enough for a job of a usual size.
std::string lock_warning(const LockLimit&);

/// Why ibv_open_device has failed with this errno.
std::string why_not_opened(const std::filesystem::path& sysfs, const std::string& device, int error);
/// Why a device is not among those of libibverbs, which has `others`.
std::string why_not_found(const std::filesystem::path& sysfs, const std::string& device, const std::string& others);

/// The error is one of these.
Result<Context> open_device(const std::string& name, const std::filesystem::path& sysfs);

}  // namespace gyre::transport::verbs
