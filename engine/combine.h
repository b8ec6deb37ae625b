// n sources to m sinks in one pass over memory: reduces in the order given, piece by piece so that what is read twice is read from the
// first-level cache. Used by one thread.
#pragma once
#include <span>
#include <vector>

#include "base/types.h"
#include "kernels/canonical.h"
#include "kernels/reduce_host.h"
#include "schedule/verify.h"

namespace gyre::engine {

struct Source {
  const std::byte* data = nullptr;
  bool own = false;                            ///< this rank's part, to be multiplied first where the operation says so
  schedule::Form form = schedule::Form::part;  ///< looked at in ordered numerics only
};

struct Sink {
  std::byte* data = nullptr;
  bool away = false;  ///< past the caches (engine/away.h); then it is none of the sources
};

class Combine {
 public:
  /// For calls of this type and operation on so many ranks. `scalar`: the bits of premul_sum's element. `ordered`: in ordered numerics
  /// (kernels/canonical.h), where what has no room in an element is of a partial sum's type.
  void bind(DataType, ReduceOp, int ranks, uint64_t scalar, bool ordered);

  /// True where a rank's own part is multiplied before it goes to others. In ordered numerics that of an average is not: they all
  /// multiply by the same.
  bool scales() const { return ordered_ ? multiplies_own_ : arithmetic_->scale != nullptr; }
  /// Writes `count` elements to every sink, in ordered numerics of the form that the fact says. A sink may be one of the sources, else
  /// they do not overlap.
  void operator()(std::span<const Source> sources, std::span<const Sink> sinks, size_t count, schedule::Fact fact,
                  schedule::Association association = schedule::Association::in_order);
  /// Reduces the inputs of all ranks, as they gave them, to what all sinks are to hold at the end. A sink may be one of the inputs.
  void whole(std::span<const std::byte* const> inputs, std::span<std::byte* const> sinks, size_t count);

 private:
  static constexpr size_t block_bytes = 4096;
  void put(const Sink&, size_t offset, const std::byte* data, size_t bytes) const;
  void in_order(std::span<const Source> sources, std::span<const Sink> sinks, size_t count, schedule::Fact fact);
  void in_canonical_order(std::span<const Source> sources, std::span<const Sink> sinks, size_t count, schedule::Form value,
                          schedule::Association association);
  size_t width(schedule::Form form) const { return wide(form) ? partial_ : element_; }
  /// Of a partial sum's type, in messages and in scratch.
  bool wide(schedule::Form form) const { return form == schedule::Form::partial || (form == schedule::Form::part && multiplies_own_); }
  void reduce(std::byte* sink, std::span<const Source> sources, size_t offset, size_t count, schedule::Fact fact);
  void pair(std::byte* sink, Source a, Source b, size_t count, bool replicated);
  void first(std::byte* sink, Source source, size_t count);
  void whole_in_canonical_order(std::span<const std::byte* const> inputs, std::span<std::byte* const> sinks, size_t count);
  void whole_block(std::span<const std::byte* const> inputs, std::span<std::byte* const> sinks, size_t offset, size_t count);

  const kernels::Arithmetic* arithmetic_ = nullptr;
  size_t element_ = 1;
  kernels::Factor factor_;
  uint64_t ranks_ = 1;
  bool ordered_ = false;
  size_t partial_ = 1;           // bytes of a partial sum's element
  bool multiplies_own_ = false;  // premul_sum, in ordered numerics
  kernels::CanonicalReduction canonical_;
  std::vector<kernels::CanonicalReduction::Source> canonical_sources_;
  alignas(64) std::byte sum_[block_bytes];
  alignas(64) std::byte scaled_[block_bytes];
  alignas(64) std::byte out_[block_bytes];
};

}  // namespace gyre::engine
