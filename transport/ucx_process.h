// Whether a process of this host lives. UCX's shared memory (1.13) tells nobody when a peer dies, so endpoints that run over it watch the
// peer's process themselves. A pidfd stays with its process, unlike a number, which may come to mean another. Knows nothing of UCX.
#pragma once
#include <cstdint>

#include "base/unique.h"

namespace gyre::transport::ucx {

/// Equal for two processes that can watch each other: one boot of one host, one pid namespace. 0: can't be found out.
uint64_t host_id();

class ProcessWatch {
 public:
  ProcessWatch() = default;
  /// Watches nothing where the process is not of this host, or the kernel has no pidfd (Linux 5.3).
  ProcessWatch(uint64_t host, uint32_t process);
  /// A system call: not for each progress.
  bool gone() const;
  explicit operator bool() const { return gone_ || fd_; }

 private:
  UniqueFd fd_;
  bool gone_ = false;
};

}  // namespace gyre::transport::ucx
