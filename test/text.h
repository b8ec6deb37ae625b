// Looking into what was said.
#pragma once
#include <string>
#include <string_view>

namespace gyre::test {

inline bool contains(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

/// How often `part` stands in `text`, overlaps included.
inline size_t occurrences(std::string_view text, std::string_view part) {
  size_t found = 0;
  for (size_t at = text.find(part); at != std::string_view::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

/// What went wrong with a Status or a Result; empty: nothing.
std::string error_of(const auto& result) { return result ? "" : result.error().what; }

}  // namespace gyre::test
