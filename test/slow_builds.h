// Builds in which tests of millions of steps take samples, and in which nothing is said about speed.
#pragma once
#include <iterator>
#include <ranges>
#include <vector>

namespace gyre::test {

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
inline constexpr bool sanitized = true;
#elif defined(__has_feature)
inline constexpr bool sanitized = __has_feature(thread_sanitizer) || __has_feature(address_sanitizer);
#else
inline constexpr bool sanitized = false;
#endif

/// Of these, all, or where a sanitizer would make that minutes every third from one on: tests of one list begin with different ones.
template <std::ranges::range List>
auto sampled(const List& all, std::ptrdiff_t first = 0) {
  std::vector<std::ranges::range_value_t<List>> some;
  const auto count = std::ranges::distance(all);
  for (std::ptrdiff_t i = sanitized ? first : 0; i < count; i += sanitized ? 3 : 1) some.push_back(*std::next(std::ranges::begin(all), i));
  return some;
}

#ifdef __OPTIMIZE__
inline constexpr bool full_speed = !sanitized;
#else
inline constexpr bool full_speed = false;
#endif

}  // namespace gyre::test
