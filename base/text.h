// Reading what people type: sizes, whole numbers, and the nearest right word for a wrong one.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace gyre {

/// A whole number without sign or blanks; empty when it is anything else or does not fit.
std::optional<uint64_t> parse_number(std::string_view);
/// Bytes as nccl-tests takes them: a number with an optional K, M or G (powers of 1024, either case, an optional B behind it).
std::optional<uint64_t> parse_bytes(std::string_view);
/// The candidate with the smallest edit distance to `word`; empty when none is closer than half its length.
std::string_view nearest(std::string_view word, std::span<const std::string_view> candidates);

}  // namespace gyre
