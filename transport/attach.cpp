#include "transport/attach.h"

#include <fmt/format.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <mutex>
#include <utility>

#include "base/text.h"
#include "transport/control.h"

namespace gyre::transport {

ProcessAddress ProcessAddress::self() {
  static std::mutex mutex;
  static pid_t owner = 0;
  static uint64_t word = 0;
  const std::lock_guard lock(mutex);
  if (std::exchange(owner, getpid()) != getpid()) word = random_number();
  return {static_cast<uint64_t>(getpid()), reinterpret_cast<uintptr_t>(&word), word};
}

Result<Attached> Attached::open(const ProcessAddress& address) {
  Attached process(address);
  GYRE_TRY(process.read(nullptr, 0, 0));
  return process;
}

// The kernel copies at most 2 GiB at a time, and stops at memory that is not there.
Status Attached::read(void* to, uint64_t from, size_t bytes) const {
  auto* here = static_cast<std::byte*>(to);
  uint64_t word = 0;
  const auto theirs = [](uint64_t at) { return reinterpret_cast<void*>(at); };  // NOLINT(performance-no-int-to-ptr): another process's
  for (;;) {
    const iovec own[] = {{here, bytes}, {&word, sizeof word}};
    const iovec other[] = {{theirs(from), bytes}, {theirs(address_.at), sizeof word}};
    const ssize_t done = process_vm_readv(static_cast<pid_t>(address_.pid), own, 2, other, 2, 0);
    if (done == static_cast<ssize_t>(bytes + sizeof word)) break;
    if (done <= 0)
      return Error{Code::remote, fmt::format("process_vm_readv: {}, {} bytes left", errno_text(done < 0 ? errno : EFAULT), bytes)};
    if (static_cast<size_t>(done) >= bytes) break;  // its word is not there any more
    here += done;
    from += static_cast<uint64_t>(done);
    bytes -= static_cast<size_t>(done);
  }
  if (word != address_.word) return Error{Code::remote, fmt::format("process {} is another", address_.pid)};
  return {};
}

Status Attached::reads_ends(uint64_t from, size_t bytes) const {
  std::byte ends[2];
  const auto at = [](uint64_t place) { return iovec{reinterpret_cast<void*>(place), 1}; };  // NOLINT(performance-no-int-to-ptr)
  const iovec own{ends, sizeof ends}, other[] = {at(from), at(from + bytes - 1)};
  const ssize_t done = process_vm_readv(static_cast<pid_t>(address_.pid), &own, 1, other, 2, 0);
  if (done == sizeof ends) return {};
  return Error{Code::remote, "process_vm_readv: " + errno_text(done < 0 ? errno : EFAULT)};
}

}  // namespace gyre::transport
