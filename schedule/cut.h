// How a chunk is cut: into slices that are under way together, so that sending, receiving and reducing overlap, and these into rounds,
// where a chunk is more than connections take at once. One rule for the engine, which runs it, and for topo/cost.h, which prices it.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace gyre::schedule {

struct Cut {
  size_t slice_elements = 1;
  uint32_t slices = 1;  ///< of a round
  uint32_t rounds = 1;

  int64_t pieces() const { return int64_t{slices} * rounds; }
};

/// What does not change from call to call.
struct Cutting {
  size_t slot_bytes = 64 << 10;  ///< the longest message
  uint32_t slices = 4;           ///< at most under way together: what was proven
  size_t unit_bytes = 64;        ///< what the bounds of slices are multiples of, unless messages of so many chunks need smaller ones
  uint32_t credits = 8;          ///< messages under way on a connection, at most
};

/// Slices of a chunk that connections of so many slots have under way together: more would overlap no more, and cost the proof time.
constexpr uint32_t slices_under_way(uint32_t credits) { return std::clamp(credits / 2, 1U, 8U); }

/// What bounds are multiples of where no more than `most` elements of a chunk fit a message.
constexpr size_t fitting(size_t unit, size_t most) {
  while (unit > std::max<size_t>(1, most)) unit /= 2;
  return unit;
}

/// Cuts a schedule's longest chunk, of `elements`; a message carries one slice of each of its chunks.
constexpr Cut cut(size_t elements, size_t element_bytes, uint32_t longest_message, const Cutting& cutting) {
  constexpr size_t overlap_bytes = 32 << 10;  // what is shorter is not worth cutting
  const auto divide_up = [](size_t a, size_t b) { return a / b + (a % b != 0 ? 1 : 0); };
  const size_t fits = cutting.slot_bytes / element_bytes / longest_message;
  const size_t unit = fitting(std::max<size_t>(1, cutting.unit_bytes / element_bytes), fits);
  const auto most = std::max<size_t>(unit, fits / unit * unit);
  const auto wished = std::min<size_t>(cutting.slices, divide_up(elements, overlap_bytes / element_bytes));
  const auto pieces = std::max<size_t>({1, wished, divide_up(elements, most)});
  Cut out;
  out.rounds = static_cast<uint32_t>(divide_up(pieces, cutting.slices));
  out.slices = static_cast<uint32_t>(divide_up(pieces, out.rounds));
  out.slice_elements = std::max(unit, divide_up(divide_up(elements, size_t{out.rounds} * out.slices), unit) * unit);
  return out;
}

}  // namespace gyre::schedule
