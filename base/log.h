// Log lines go to one sink: stderr until somebody (NCCL, a test) gives another. Lines below the level cost one load.
// Safe from any thread. Not for the hot path: nothing logs per step.
#pragma once
#include <fmt/format.h>

#include <string_view>
#include <utility>

namespace gyre::log {

enum class Level : int { error, warn, info, debug };

using Sink = void (*)(Level, std::string_view line);

void set_sink(Sink);  // null: stderr
void set_level(Level);
/// What stands before each line, such as "rank 3: ".
void set_prefix(std::string_view);
bool enabled(Level);
void write(Level, std::string_view line);

template <class... Args>
void error(fmt::format_string<Args...> format, Args&&... args) {
  if (enabled(Level::error)) write(Level::error, fmt::format(format, std::forward<Args>(args)...));
}
template <class... Args>
void warn(fmt::format_string<Args...> format, Args&&... args) {
  if (enabled(Level::warn)) write(Level::warn, fmt::format(format, std::forward<Args>(args)...));
}
template <class... Args>
void info(fmt::format_string<Args...> format, Args&&... args) {
  if (enabled(Level::info)) write(Level::info, fmt::format(format, std::forward<Args>(args)...));
}
template <class... Args>
void debug(fmt::format_string<Args...> format, Args&&... args) {
  if (enabled(Level::debug)) write(Level::debug, fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace gyre::log
