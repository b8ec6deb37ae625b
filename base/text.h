// Reading what people type: sizes, whole numbers, grids, and the nearest right word for a wrong one. And what the system says, for them.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace gyre {

/// A whole number without sign or blanks; empty when it is anything else or does not fit.
std::optional<uint64_t> parse_number(std::string_view);
/// Bytes as nccl-tests takes them: a number with an optional K, M or G (powers of 1024, either case, an optional B behind it).
std::optional<uint64_t> parse_bytes(std::string_view);
/// The extents of a grid of ranks, such as 4x2. The error says only what it must be: whoever asks knows what it is for.
Result<std::vector<int>> parse_grid(std::string_view);
/// The candidate with the smallest edit distance to `word`; empty when none is closer than half its length.
std::string_view nearest(std::string_view word, std::span<const std::string_view> candidates);
/// What a line for people may carry of a foreign text: so many characters, each of printable ASCII, others being a ?.
std::string printable(std::string_view, size_t most);
/// What an errno value means; safe from any thread.
std::string errno_text(int error);

}  // namespace gyre
