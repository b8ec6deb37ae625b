// A call, and what its arguments must be on the rank that makes it. Pure: nothing is touched.
#pragma once
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
Call normal(Call);
/// What a call means for so many ranks; of one chunk per block.
schedule::Layout layout(const Call&, int ranks);

/// What a rank brings to a call. A buffer that it does not have is never looked at.
struct Buffers {
  const void* input = nullptr;
  void* output = nullptr;
  uint64_t scalar = 0;  ///< Call::scalar
};

/// True where input and output share memory in the way that NCCL calls in place: the block that one of them has lies in the other, where
/// it belongs.
bool in_place(const Call&, Rank, int ranks, const Buffers&);
/// Of the memory of a rank's buffers; of a valid call.
size_t own_bytes(const Call&, Rank, int ranks, const Buffers&);
/// What is wrong with the arguments; nothing: the call can be made.
std::optional<Error> refuse(const Call&, Rank, int ranks, const Buffers&);
/// "all_reduce", or "unknown" for a value that is none.
std::string_view spoken(Collective);

}  // namespace gyre::engine
