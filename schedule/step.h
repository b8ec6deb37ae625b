// One step of a schedule: one flow of data. What arrives from `from` and the local `src`, reduced as `association` says, goes to the local
// `dst` and to every peer in `to`. Each operand may be absent. The operation is derived from the operands and never stored, so that it
// cannot contradict them.
#pragma once
#include <cstdint>
#include <string>

namespace gyre::schedule {

/// Index into the table of buffers that an execution binds; in place, input and output share memory (layout.h). Scratch is the
/// library's own, for what is neither.
enum class Buffer : uint8_t { input, output, scratch };

/// `count` chunks of a buffer: first, first + stride, …; none: absent.
struct Chunks {
  Buffer buffer = Buffer::input;
  uint32_t first = 0;
  uint32_t count = 0;
  uint32_t stride = 1;

  bool present() const { return count != 0; }
  uint32_t operator[](uint32_t i) const { return first + i * stride; }
  bool contains(uint32_t chunk) const {
    return count != 0 && chunk >= first && (chunk - first) % stride == 0 && (chunk - first) / stride < count;
  }
  bool shares(const Chunks& other) const {
    if (!present() || !other.present() || first > other[other.count - 1] || other.first > (*this)[count - 1]) return false;
    for (uint32_t i = 0; i < count; ++i) {
      if (other.contains((*this)[i])) return true;
    }
    return false;
  }
  bool operator==(const Chunks&) const = default;
};

/// An ordered list of ranks, kept in the schedule's peer table.
struct Peers {
  uint32_t first = 0;
  uint32_t count = 0;

  bool operator==(const Peers&) const = default;
};

/// How the sources of a step, in the order listed, are reduced.
enum class Association : uint8_t {
  in_order,  ///< each with the sum of those before it
  tree,      ///< by the canonical tree of so many (canonical.h)
};

struct Step {
  Peers from;
  Chunks src;
  Chunks dst;
  Peers to;
  uint32_t place = 0;  ///< how many of the arrivals stand before `src` in the reduction
  Association association = Association::in_order;

  uint32_t sources() const { return from.count + (src.present() ? 1 : 0); }
  bool reduces() const { return sources() > 1; }
  /// The chunks that flow; every step names them by src or dst, else the size of its message would be unknown.
  const Chunks& flow() const { return dst.present() ? dst : src; }
  bool operator==(const Step&) const = default;
};

/// "s", "c", "cs", "r" (receive into dst), "rs", "rcs", "rrc", "rrs", "rrcs": receive, reduce, copy, send.
inline std::string operation(const Step& step) {
  std::string text;
  if (step.from.count != 0) text += 'r';
  if (step.reduces()) text += 'r';
  if (step.dst.present() && !(step.from.count != 0 && !step.reduces() && step.to.count == 0)) text += 'c';
  if (step.to.count != 0) text += 's';
  return text;
}

}  // namespace gyre::schedule
