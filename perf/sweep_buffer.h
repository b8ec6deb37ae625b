// Host memory for a sweep: page-aligned, zeros.
#pragma once
#include <cstddef>
#include <utility>

#include "base/result.h"

namespace gyre::perf {

class SweepBuffer {
 public:
  static Result<SweepBuffer> allocate(size_t bytes);
  SweepBuffer(SweepBuffer&& other) noexcept : data_(std::exchange(other.data_, nullptr)), bytes_(other.bytes_) {}
  SweepBuffer& operator=(SweepBuffer&&) = delete;
  ~SweepBuffer();
  void* data() const { return data_; }

 private:
  SweepBuffer(void* data, size_t bytes) : data_(data), bytes_(bytes) {}
  void* data_;
  size_t bytes_;
};

}  // namespace gyre::perf
