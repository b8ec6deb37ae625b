// An address as text: numbers in hexadecimal, with colons between them.
#pragma once
#include <charconv>
#include <cstdint>
#include <initializer_list>
#include <string_view>

namespace gyre::transport {

/// False: these are not so many.
inline bool parse_fields(std::string_view text, std::initializer_list<uint64_t*> fields) {
  for (uint64_t* field : fields) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *field, 16);
    if (error != std::errc()) return false;
    text.remove_prefix(static_cast<size_t>(end - text.data()));
    if (text.starts_with(':')) text.remove_prefix(1);
  }
  return text.empty();
}

}  // namespace gyre::transport
