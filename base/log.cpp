#include "base/log.h"

#include <unistd.h>

#include <array>
#include <atomic>
#include <mutex>
#include <string>

namespace gyre::log {
namespace {

constexpr std::array<std::string_view, 4> level_names{"error", "warning", "info", "debug"};

std::atomic<Level> current_level{Level::warn};
std::atomic<Sink> current_sink{nullptr};
std::mutex prefix_mutex;
std::string& prefix() {
  static auto& text = *new std::string;  // never destroyed: lines are written to the very end
  return text;
}

void to_stderr(Level level, std::string_view line) {
  std::string text;
  {
    const std::lock_guard lock(prefix_mutex);
    text = fmt::format("gyre: {}{}: {}\n", prefix(), level_names[static_cast<size_t>(level)], line);
  }
  // One write a line, so that lines of several ranks do not mix. Nothing can be done about a log that can't be written.
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, text.data(), text.size());
}

}  // namespace

void set_sink(Sink sink) { current_sink = sink; }
void set_level(Level level) { current_level = level; }
void set_prefix(std::string_view text) {
  const std::lock_guard lock(prefix_mutex);
  prefix() = text;
}
bool enabled(Level level) { return level <= current_level.load(std::memory_order_relaxed); }
void write(Level level, std::string_view line) {
  const Sink sink = current_sink;
  (sink != nullptr ? sink : to_stderr)(level, line);
}

}  // namespace gyre::log
