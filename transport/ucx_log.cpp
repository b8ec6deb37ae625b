#include "transport/ucx_log.h"

#include <ucs/debug/log_def.h>

#include <array>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <mutex>

#include "base/log.h"

namespace gyre::transport::ucx {
namespace {

// What UCX calls an error is one of ours only if a call fails of it, and then it is told as such.
log::Level level_of(ucs_log_level_t level) {
  if (level == UCS_LOG_LEVEL_FATAL) return log::Level::error;
  return level == UCS_LOG_LEVEL_ERROR ? log::Level::warn : log::Level::info;
}

ucs_log_func_rc_t take(const char* /*file*/, unsigned /*line*/, const char* /*function*/, ucs_log_level_t level,
                       const ucs_log_component_config_t* /*component*/, const char* message, va_list arguments) {
  if (level > UCS_LOG_LEVEL_WARN) return UCS_LOG_FUNC_RC_CONTINUE;
  std::array<char, 1024> text{};
  std::vsnprintf(text.data(), text.size(), message, arguments);
  if (log::enabled(level_of(level))) log::write(level_of(level), fmt::format("UCX: {}", text.data()));
  return UCS_LOG_FUNC_RC_STOP;
}

}  // namespace

void route_log() {
  static std::once_flag once;
  std::call_once(once, [] {
    if (std::getenv("UCX_LOG_LEVEL") == nullptr && std::getenv("UCX_LOG_FILE") == nullptr) ucs_log_push_handler(take);
  });
}

}  // namespace gyre::transport::ucx
