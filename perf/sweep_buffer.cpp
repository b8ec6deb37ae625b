#include "perf/sweep_buffer.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace gyre::perf {

Result<SweepBuffer> SweepBuffer::allocate(size_t bytes) {
  const size_t mapped = std::max<size_t>(bytes, 1);
  void* data = mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (data == MAP_FAILED) return Error{Code::system, fmt::format("cannot allocate a buffer of {} bytes: {}", bytes, std::strerror(errno))};
  return SweepBuffer(data, mapped);
}

SweepBuffer::~SweepBuffer() {
  if (data_ != nullptr) munmap(data_, bytes_);
}

}  // namespace gyre::perf
