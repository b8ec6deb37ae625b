#include "transport/private_fd.h"

#include <fcntl.h>
#include <pthread.h>

#include <mutex>
#include <vector>

namespace gyre::transport {
namespace {

struct PrivateFds {
  std::mutex mutex;
  std::vector<int> all;
};

// Never destroyed: a fork may come at any time.
PrivateFds& private_fds() {
  static auto& fds = *new PrivateFds;
  return fds;
}

// The numbers stay taken, by something harmless, since the child has our objects too and may destroy them.
void leave_to_parent() {
  const int nothing = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  for (const int fd : private_fds().all) nothing >= 0 ? ::dup3(nothing, fd, O_CLOEXEC) : ::close(fd);
  if (nothing >= 0) ::close(nothing);
  private_fds().mutex.unlock();
}

void watch_forks() {
  static const int watched = pthread_atfork([] { private_fds().mutex.lock(); }, [] { private_fds().mutex.unlock(); }, leave_to_parent);
  (void)watched;  // without memory for it forks are as they were
}

}  // namespace

PrivateFd::PrivateFd(UniqueFd fd) : fd_(std::move(fd)) {
  if (!fd_) return;
  watch_forks();
  const std::lock_guard lock(private_fds().mutex);
  private_fds().all.push_back(fd_.get());
}

PrivateFd::~PrivateFd() {
  if (!fd_) return;
  const std::lock_guard lock(private_fds().mutex);
  std::erase(private_fds().all, fd_.get());
  fd_ = UniqueFd();
}

}  // namespace gyre::transport
