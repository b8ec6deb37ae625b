#include "engine/arguments.h"

#include <fmt/format.h>

#include <algorithm>

namespace gyre::engine {
namespace {

using schedule::Layout;

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

}  // namespace

uint64_t scalar_bits(DataType type, const void* element) {
  uint64_t bits = 0;
  for (size_t i = 0; i < size_of(type); ++i) bits |= uint64_t{static_cast<const uint8_t*>(element)[i]} << (8 * i);
  return bits;
}

Layout layout(const Call& call, int ranks) { return {call.collective, ranks, call.root, 1}; }

Extent extent(const Call& call, Rank rank, int ranks) {
  const Layout all = layout(call, ranks);
  const size_t block = call.count * size_of(call.type);
  Extent e;
  e.reads = all.has_input(rank);
  e.writes = all.has_output(rank);
  e.element_bytes = size_of(call.type);
  if (e.reads) e.input_bytes = all.input_blocks() * block;
  if (e.writes) e.output_bytes = all.output_blocks() * block;
  e.has_in_place = all.has_in_place() && e.reads && e.writes;
  e.input_at = all.input_offset(rank) * block;
  e.output_at = all.output_offset(rank) * block;
  return e;
}

std::optional<Error> refuse(const Call& call, int ranks) {
  if (static_cast<size_t>(call.collective) >= collective_count) {
    return Error{Code::invalid_argument, fmt::format("there is no collective {}", static_cast<int>(call.collective))};
  }
  const std::string wrong = wrong_call(call, ranks);
  if (wrong.empty()) return std::nullopt;
  return Error{Code::invalid_argument, fmt::format("{}: {}", name(call.collective), wrong)};
}

std::optional<Error> refuse(const Call& call, Rank rank, const Extent& extent, const Buffers& buffers) {
  if (extent.fits(buffers)) return std::nullopt;
  const std::string wrong = !extent.given(buffers)     ? fmt::format("null buffer for {} elements", call.count)
                            : !extent.aligned(buffers) ? fmt::format("buffers must be aligned to {} bytes", extent.element_bytes)
                                                       : wrong_overlap(call.collective, rank);
  return Error{Code::invalid_argument, fmt::format("{}: {}", name(call.collective), wrong)};
}

std::string_view spoken(Collective collective) { return static_cast<size_t>(collective) < collective_count ? name(collective) : "unknown"; }

}  // namespace gyre::engine
