#include "perf/sweep_buffer.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/log.h"
#include "transport/shared_heap.h"

namespace gyre::perf {

Result<SweepBuffer> SweepBuffer::allocate(size_t bytes, Kind kind) {
  if (kind == Kind::shared_heap) return SweepBuffer(GYRE_TRY(transport::SharedHeap::of_process().allocate(bytes)), bytes, kind);
  const size_t mapped = std::max<size_t>(bytes, 1);
  void* data = mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (data == MAP_FAILED) return Error{Code::system, fmt::format("cannot allocate a buffer of {} bytes: {}", bytes, std::strerror(errno))};
  return SweepBuffer(data, mapped, kind);
}

SweepBuffer::~SweepBuffer() {
  if (data_ == nullptr) return;
  if (kind_ == Kind::ordinary) {
    munmap(data_, bytes_);
  } else if (const Status released = transport::SharedHeap::of_process().release(data_); !released) {
    log::warn("{}", released.error().what);
  }
}

}  // namespace gyre::perf
