// Host memory for a sweep: page-aligned, zeros. Ordinary memory, or of the heap that the ranks of a host share.
#pragma once
#include <cstddef>
#include <utility>

#include "base/result.h"
#include "engine/arguments.h"

namespace gyre::perf {

class SweepBuffer {
 public:
  using Kind = engine::BufferKind;

  static Result<SweepBuffer> allocate(size_t bytes, Kind kind = Kind::ordinary);
  SweepBuffer(SweepBuffer&& other) noexcept : data_(std::exchange(other.data_, nullptr)), bytes_(other.bytes_), kind_(other.kind_) {}
  SweepBuffer& operator=(SweepBuffer&&) = delete;
  ~SweepBuffer();
  void* data() const { return data_; }

 private:
  SweepBuffer(void* data, size_t bytes, Kind kind) : data_(data), bytes_(bytes), kind_(kind) {}
  void* data_;
  size_t bytes_;
  Kind kind_;
};

}  // namespace gyre::perf
