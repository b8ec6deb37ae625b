// What a step computes, as kernels: the GPU's counterpart of combine.h, with the same bits. Three sources and two destinations are the most
// that a kernel here has; what is more goes by several, one after another, over sums on their way in the GPU's memory.
#pragma once
#include <span>
#include <vector>

#include "engine/device_steps.h"

namespace gyre::engine {

class DeviceReduction {
 public:
  using Source = DeviceSource;

  /// Kernels are added to `out`.
  DeviceReduction(const Call&, int ranks, uint64_t scalar, const Staging&, std::vector<DeviceKernel>& out);

  /// What follows belongs to another step.
  void begin() { keeps_sums_ = false; }
  /// Reduces the sources, in their order, to every sink. A sink may be one of the sources, else they do not overlap.
  void write(std::vector<Source> sources, std::span<std::byte* const> sinks, size_t count, const schedule::Fact&);
  /// The step leaves sums on their way.
  bool keeps_sums() const { return keeps_sums_; }
  /// How many of the staging's sums all that was written takes.
  size_t sums() const { return sums_; }

 private:
  /// Of what is multiplied.
  bool scales() const { return call_.op == ReduceOp::premul_sum || (call_.op == ReduceOp::avg && !is_integer(call_.type)); }
  bool divides() const { return call_.op == ReduceOp::avg && is_integer(call_.type); }
  void multiply_own(std::vector<Source>&, size_t count, bool replicated);
  void reduce(std::span<const Source> sources, std::span<std::byte* const> sinks, size_t count, bool last);
  void multiply(const std::byte* source, std::span<std::byte* const> sinks, size_t count);
  void copy(const std::byte* source, std::span<std::byte* const> sinks, size_t count);
  DeviceKernel& add(kernels::Shape, ReduceOp, uint64_t scalar, size_t count);
  std::byte* sum(size_t which);

  Call call_;
  uint64_t ranks_, scalar_;
  const Staging& staging_;
  std::vector<DeviceKernel>& out_;
  bool keeps_sums_ = false;
  size_t sums_ = 0;
};

}  // namespace gyre::engine
