#include "engine/arguments.h"

#include <fmt/format.h>

#include <algorithm>

namespace gyre::engine {
namespace {

using schedule::Layout;

struct Bounds {
  uintptr_t begin = 0;
  size_t bytes = 0;

  bool overlaps(const Bounds& other) const { return begin < other.begin + other.bytes && other.begin < begin + bytes; }
};
Bounds bounds(const void* memory, uint32_t blocks, const Call& call) {
  return {reinterpret_cast<uintptr_t>(memory), blocks * call.count * size_of(call.type)};
}

// What makes an overlap of this collective's buffers wrong.
std::string wrong_overlap(Collective collective, Rank rank) {
  switch (collective) {
    case Collective::all_to_all:
      return "input and output overlap, and it has no form in place";
    case Collective::all_gather:
    case Collective::gather:
      return fmt::format("input and output overlap, and the input is not block {} of the output", rank);
    case Collective::reduce_scatter:
    case Collective::scatter:
      return fmt::format("input and output overlap, and the output is not block {} of the input", rank);
    default:
      return "input and output overlap and are not the same";
  }
}

// Of the call, whatever the memory.
std::string wrong_call(const Call& call, int ranks) {
  if (static_cast<size_t>(call.type) >= data_type_count) return fmt::format("there is no type {}", static_cast<int>(call.type));
  if (reduces(call.collective) && static_cast<size_t>(call.op) >= every_reduce_op_count) {
    return fmt::format("there is no operation {}", static_cast<int>(call.op));
  }
  if (rooted(call.collective) && (call.root < 0 || call.root >= ranks)) return fmt::format("root {} of {} ranks", call.root, ranks);
  const Layout all = layout(call, ranks);
  const size_t blocks = std::max(all.input_blocks(), all.output_blocks());
  size_t bytes = 0;
  const bool overflows = __builtin_mul_overflow(call.count, size_of(call.type) * blocks, &bytes);
  if (!overflows && bytes <= most_bytes) return {};
  const std::string per_rank = blocks == 1 ? "" : fmt::format(" for each of {} ranks", ranks);
  return fmt::format("{} elements of {}{} are more than {} bytes", call.count, name(call.type), per_rank, most_bytes);
}

std::string wrong_buffers(const Call& call, Rank rank, int ranks, const Buffers& buffers) {
  const Layout all = layout(call, ranks);
  const bool reads = all.has_input(rank);
  const bool writes = all.has_output(rank);
  if (call.count != 0 && ((reads && buffers.input == nullptr) || (writes && buffers.output == nullptr))) {
    return fmt::format("null buffer for {} elements", call.count);
  }
  const Bounds in = bounds(buffers.input, all.input_blocks(), call);
  const Bounds out = bounds(buffers.output, all.output_blocks(), call);
  const size_t element = size_of(call.type);
  const size_t odd = element - 1;  // elements' sizes are powers of two, and a division takes as long as much of a small call
  if ((reads && (in.begin & odd) != 0) || (writes && (out.begin & odd) != 0)) {
    return fmt::format("buffers must be aligned to {} bytes", element);
  }
  if (reads && writes && in.overlaps(out) && !in_place(call, rank, ranks, buffers)) return wrong_overlap(call.collective, rank);
  return {};
}

}  // namespace

uint64_t scalar_bits(DataType type, const void* element) {
  uint64_t bits = 0;
  for (size_t i = 0; i < size_of(type); ++i) bits |= uint64_t{static_cast<const uint8_t*>(element)[i]} << (8 * i);
  return bits;
}

Call normal(Call call) {
  if (!reduces(call.collective)) call.op = ReduceOp::sum;
  if (!rooted(call.collective)) call.root = 0;
  call.scalar = 0;
  return call;
}

Layout layout(const Call& call, int ranks) { return {call.collective, ranks, call.root, 1}; }

bool in_place(const Call& call, Rank rank, int ranks, const Buffers& buffers) {
  const Layout all = layout(call, ranks);
  if (!all.has_in_place() || !all.has_input(rank) || !all.has_output(rank)) return false;
  const size_t block = call.count * size_of(call.type);
  return reinterpret_cast<uintptr_t>(buffers.input) - all.input_offset(rank) * block ==
         reinterpret_cast<uintptr_t>(buffers.output) - all.output_offset(rank) * block;
}

size_t own_bytes(const Call& call, Rank rank, int ranks, const Buffers& buffers) {
  const schedule::Layout layout = engine::layout(call, ranks);
  const size_t in = layout.has_input(rank) ? layout.input_blocks() : 0;
  const size_t out = layout.has_output(rank) ? layout.output_blocks() : 0;
  return (in_place(call, rank, ranks, buffers) ? std::max(in, out) : in + out) * call.count * size_of(call.type);
}

std::optional<Error> refuse(const Call& call, Rank rank, int ranks, const Buffers& buffers) {
  if (static_cast<size_t>(call.collective) >= collective_count) {
    return Error{Code::invalid_argument, fmt::format("there is no collective {}", static_cast<int>(call.collective))};
  }
  std::string wrong = wrong_call(call, ranks);
  if (wrong.empty()) wrong = wrong_buffers(call, rank, ranks, buffers);
  if (wrong.empty()) return std::nullopt;
  return Error{Code::invalid_argument, fmt::format("{}: {}", name(call.collective), wrong)};
}

std::string_view spoken(Collective collective) { return static_cast<size_t>(collective) < collective_count ? name(collective) : "unknown"; }

}  // namespace gyre::engine
