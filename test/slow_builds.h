// Builds in which tests of millions of steps take samples, and in which nothing is said about speed.
#pragma once

namespace gyre::test {

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
inline constexpr bool sanitized = true;
#elif defined(__has_feature)
inline constexpr bool sanitized = __has_feature(thread_sanitizer) || __has_feature(address_sanitizer);
#else
inline constexpr bool sanitized = false;
#endif

#ifdef __OPTIMIZE__
inline constexpr bool full_speed = !sanitized;
#else
inline constexpr bool full_speed = false;
#endif

}  // namespace gyre::test
