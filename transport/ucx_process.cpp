#include "transport/ucx_process.h"

#include <poll.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <string>

#include "base/hash.h"

namespace gyre::transport::ucx {

uint64_t host_id() {
  std::string boot;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> boot;
  struct stat pids {};
  if (boot.empty() || stat("/proc/self/ns/pid", &pids) != 0) return 0;
  return fnv1a(boot + std::to_string(pids.st_ino));
}

ProcessWatch::ProcessWatch(uint64_t host, uint32_t process) {
  if (host == 0 || host != host_id()) return;
#ifdef SYS_pidfd_open
  fd_ = UniqueFd(static_cast<int>(syscall(SYS_pidfd_open, static_cast<pid_t>(process), 0)));
  gone_ = !fd_ && errno == ESRCH;
#else
  (void)process;
#endif
}

bool ProcessWatch::gone() const {
  if (!fd_) return gone_;
  pollfd fd{fd_.get(), POLLIN, 0};
  return poll(&fd, 1, 0) == 1;
}

}  // namespace gyre::transport::ucx
