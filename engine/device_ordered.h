// What a step computes in ordered numerics, as kernels: the GPU's counterpart of combine.h's, by the canonical tree and with the same bits
// (kernels/canonical.h). A kernel has two sources; the tree's other sums lie in the GPU's memory on their way.
#pragma once
#include <span>
#include <vector>

#include "engine/device_steps.h"

namespace gyre::engine {

class DeviceOrderedReduction {
 public:
  /// Kernels are added to `out`. `scalar`: of this rank's call.
  DeviceOrderedReduction(const Plan&, uint64_t scalar, const Staging&, std::vector<DeviceKernel>& out);

  void begin() { keeps_sums_ = false; }
  /// Reduces the sources to every sink, of the value's form. A sink of a source's width may be that source, else they do not overlap.
  void write(std::span<const DeviceSource> sources, std::span<std::byte* const> sinks, size_t count, schedule::Form value,
             schedule::Association association);
  bool keeps_sums() const { return keeps_sums_; }
  /// How many of the staging's sums all that was written takes.
  size_t sums() const { return sums_; }

 private:
  /// What a kernel reads or writes: a partial sum's elements, else an input's.
  struct Operand {
    std::byte* data = nullptr;
    bool partial = false;
    bool multiplied = false;  ///< it is first, by the factor
  };
  struct Block {
    size_t first = 0, count = 0;
  };

  bool multiplies_own() const { return call_.op == ReduceOp::premul_sum; }
  bool converts() const { return partial_ != element_; }
  bool wide(schedule::Form form) const { return form == schedule::Form::partial || (form == schedule::Form::part && multiplies_own()); }
  Operand operand(const DeviceSource&) const;
  void write_block(std::span<const Operand> sources, std::span<std::byte* const> sinks, const Block&, bool partial,
                   schedule::Association association);
  Operand subtree(std::span<const Operand> sources, size_t first, size_t end, const Block&, size_t depth);
  Operand leaf(const Operand& source, const Block&, size_t depth);
  Operand sum(size_t depth);
  void add(std::span<const Operand> sources, std::span<const Operand> sinks, size_t count);
  void pass_on(const Operand& source, std::span<std::byte* const> sinks, size_t count);
  std::byte* at(const Operand& operand, const Block& block) const {
    return operand.data + block.first * (operand.partial ? partial_ : element_);
  }

  Call call_;
  const Staging& staging_;
  std::vector<DeviceKernel>& out_;
  size_t element_, partial_;
  uint64_t scalar_;   // bits of the type's element, by which parts are multiplied
  float factor_ = 1;  // the same of those that are widened
  bool keeps_sums_ = false;
  size_t sums_ = 0;
};

}  // namespace gyre::engine
