// A call, and what its arguments must be on the rank that makes it. Pure: nothing is touched.
#pragma once
#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>

#include "base/result.h"
#include "base/types.h"
#include "schedule/layout.h"

namespace gyre::engine {

constexpr size_t most_bytes = size_t{1} << 43;  ///< of a buffer

struct Call {
  Collective collective = Collective::all_reduce;
  size_t count = 0;  ///< elements of a block (schedule/layout.h)
  DataType type = DataType::float32;
  ReduceOp op = ReduceOp::sum;  ///< ignored where nothing is reduced
  Rank root = 0;                ///< ignored where there is none
  /// The bits of the element that this rank's input is multiplied by (scalar_bits); only of premul_sum, and may differ by rank.
  uint64_t scalar = 0;

  bool operator==(const Call&) const = default;
};

/// Where the buffers of all ranks lie in a call: any memory, or transport::SharedHeap's.
enum class BufferKind : uint8_t { ordinary, shared_heap };

/// An element's bits, read from host memory, as a call carries them.
uint64_t scalar_bits(DataType, const void* element);
/// The call with what is ignored, or is this rank's only, at its default, so that calls that go together compare equal.
inline Call normal(Call call) {
  if (!reduces(call.collective)) call.op = ReduceOp::sum;
  if (!rooted(call.collective)) call.root = 0;
  call.scalar = 0;
  return call;
}
/// What a call means for so many ranks; of one chunk per block.
schedule::Layout layout(const Call&, int ranks);

/// What a rank brings to a call. A buffer that it does not have is never looked at.
struct Buffers {
  const void* input = nullptr;
  void* output = nullptr;
  uint64_t scalar = 0;  ///< Call::scalar
};

/// What a call reads and writes of a rank's memory, from which follows what its buffers must be.
struct Extent {
  bool reads = false, writes = false;  ///< it has such a buffer, be it of no elements
  size_t input_bytes = 0, output_bytes = 0;
  size_t element_bytes = 1;
  bool has_in_place = false;
  size_t input_at = 0, output_at = 0;  ///< in place: bytes before each in the memory that they share

  /// True where input and output share memory in the way that NCCL calls in place: the block that one of them has lies in the other, where
  /// it belongs.
  bool in_place(const Buffers& b) const { return has_in_place && address(b.input) - input_at == address(b.output) - output_at; }
  /// Of the memory of both.
  size_t own_bytes(const Buffers& b) const { return in_place(b) ? std::max(input_bytes, output_bytes) : input_bytes + output_bytes; }
  bool given(const Buffers& b) const { return (input_bytes == 0 || b.input != nullptr) && (output_bytes == 0 || b.output != nullptr); }
  /// Elements' sizes are powers of two.
  bool aligned(const Buffers& b) const {
    return (((reads ? address(b.input) : 0) | (writes ? address(b.output) : 0)) & (element_bytes - 1)) == 0;
  }
  bool fits(const Buffers& b) const { return given(b) && aligned(b) && (!overlap(b) || in_place(b)); }

 private:
  static uintptr_t address(const void* memory) { return reinterpret_cast<uintptr_t>(memory); }
  bool overlap(const Buffers& b) const {
    return reads && writes && address(b.input) < address(b.output) + output_bytes && address(b.output) < address(b.input) + input_bytes;
  }
};
/// Of a valid call.
Extent extent(const Call&, Rank, int ranks);

/// What is wrong with the call, whatever the memory; nothing: it is valid.
std::optional<Error> refuse(const Call&, int ranks);
/// What is wrong with the buffers of a valid call.
std::optional<Error> refuse(const Call&, Rank, const Extent&, const Buffers&);
/// "all_reduce", or "unknown" for a value that is none.
std::string_view spoken(Collective);

}  // namespace gyre::engine
