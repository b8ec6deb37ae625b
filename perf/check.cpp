#include "perf/check.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "perf/reference.h"

namespace gyre::perf {
namespace {

constexpr std::byte guard{0x5a};

// Elements [first, first + count) of the rank's input.
void fill(const Case& c, Rank rank, void* data, size_t first, size_t count) {
  if (c.benchmark->reduces()) {
    fill_input(data, count, c.type, c.op, rank, c.ranks, first);
  } else {
    fill_bits(data, count, c.type, rank, first);
  }
}

// Whose input a block of a rank's output is, and its first element there.
struct Origin {
  Rank rank;
  size_t first;
};
Origin origin(const Case& c, Rank rank, size_t block) {
  const size_t own = static_cast<size_t>(rank) * c.count;
  if (!c.benchmark->collective) return {(rank + c.ranks - 1) % c.ranks, 0};
  switch (*c.benchmark->collective) {
    case Collective::broadcast:
      return {c.root, 0};
    case Collective::scatter:
      return {c.root, own};
    case Collective::all_to_all:
      return {static_cast<Rank>(block), own};
    default:  // gather and all-gather
      return {static_cast<Rank>(block), 0};
  }
}

}  // namespace

void prepare(const Case& c, Rank rank, void* input) { fill(c, rank, input, 0, c.input_elements(rank)); }

size_t count_wrong(const Case& c, Rank rank, const void* output) {
  const size_t elements = c.output_elements(rank);
  if (c.benchmark->reduces()) {
    const size_t first = c.benchmark->input_per_rank ? static_cast<size_t>(rank) * c.count : 0;
    return count_wrong(output, elements, c.type, c.op, c.ranks, first);
  }
  size_t wrong = 0;
  for (size_t block = 0; block * c.count < elements; ++block) {
    const Origin from = origin(c, rank, block);
    const auto* data = static_cast<const std::byte*>(output) + block * c.count * size_of(c.type);
    wrong += count_wrong_bits(data, c.count, c.type, from.rank, from.first);
  }
  return wrong;
}

size_t count_changed(const Case& c, Rank rank, const void* input) {
  alignas(8) std::array<std::byte, 16384> before;
  const size_t size = size_of(c.type);
  const size_t elements = c.input_elements(rank);
  size_t changed = 0;
  for (size_t first = 0; first < elements;) {
    const size_t count = std::min(elements - first, before.size() / size);
    fill(c, rank, before.data(), first, count);
    const auto* now = static_cast<const std::byte*>(input) + first * size;
    if (std::memcmp(before.data(), now, count * size) != 0) {
      for (size_t i = 0; i < count; ++i) changed += std::memcmp(&before[i * size], now + i * size, size) == 0 ? 0 : 1;
    }
    first += count;
  }
  return changed;
}

void set_guard(void* behind) { std::memset(behind, static_cast<int>(guard), guard_bytes); }

size_t count_trespasses(const void* behind) {
  const auto* bytes = static_cast<const std::byte*>(behind);
  return guard_bytes - static_cast<size_t>(std::count(bytes, bytes + guard_bytes, guard));
}

}  // namespace gyre::perf
