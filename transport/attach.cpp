#include "transport/attach.h"

#include <fmt/format.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>

#include "base/text.h"
#include "transport/control.h"

namespace gyre::transport {

ProcessAddress ProcessAddress::self() {
  static const uint64_t word = random_number();
  return {static_cast<uint64_t>(getpid()), reinterpret_cast<uintptr_t>(&word), word};
}

Result<Attached> Attached::open(const ProcessAddress& address) {
  const Attached process(static_cast<pid_t>(address.pid));
  uint64_t found = 0;
  GYRE_TRY(process.read(&found, address.at, sizeof found));
  if (found != address.word) return Error{Code::remote, "another process has this number here"};
  return process;
}

// The kernel copies at most 2 GiB at a time, and stops at memory that is not there.
Status Attached::read(void* to, uint64_t from, size_t bytes) const {
  auto* here = static_cast<std::byte*>(to);
  while (bytes != 0) {
    const iovec own{here, bytes};
    const iovec other{reinterpret_cast<void*>(from), bytes};  // NOLINT(performance-no-int-to-ptr): another process's
    const ssize_t done = process_vm_readv(pid_, &own, 1, &other, 1, 0);
    if (done <= 0) return Error{Code::remote, fmt::format("{}, {} bytes left", errno_text(done == 0 ? EFAULT : errno), bytes)};
    here += done;
    from += static_cast<uint64_t>(done);
    bytes -= static_cast<size_t>(done);
  }
  return {};
}

}  // namespace gyre::transport
