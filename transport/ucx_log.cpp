#include "transport/ucx_log.h"

#include <dlfcn.h>
#include <ucs/debug/log_def.h>

#include <array>
#include <atomic>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>

#include "base/log.h"
#include "transport/ucx_library.h"

namespace gyre::transport::ucx {
namespace {

std::atomic<bool> wanted{false};
unsigned contexts = 0;
unsigned place = 0;  // of our handler among UCX's, from 1; 0: not there

// What UCX calls an error is one of ours only if a call fails of it, and then it is told as such.
log::Level level_of(ucs_log_level_t level) {
  if (level == UCS_LOG_LEVEL_FATAL) return log::Level::error;
  return level == UCS_LOG_LEVEL_ERROR ? log::Level::warn : log::Level::info;
}

ucs_log_func_rc_t take(const char* /*file*/, unsigned /*line*/, const char* /*function*/, ucs_log_level_t level,
                       const ucs_log_component_config_t* /*component*/, const char* message, va_list arguments) {
  if (level > UCS_LOG_LEVEL_WARN || !wanted.load(std::memory_order_relaxed)) return UCS_LOG_FUNC_RC_CONTINUE;
  std::array<char, 1024> text{};
  std::vsnprintf(text.data(), text.size(), message, arguments);
  if (log::enabled(level_of(level))) log::write(level_of(level), fmt::format("UCX: {}", text.data()));
  return UCS_LOG_FUNC_RC_STOP;
}

}  // namespace

void route_log() {
  if (contexts++ > 0 || std::getenv("UCX_LOG_LEVEL") != nullptr || std::getenv("UCX_LOG_FILE") != nullptr) return;
  wanted = true;
  if (place != 0 && ucs_log_num_handlers() >= place) return;
  ucs_log_push_handler(take);
  place = ucs_log_num_handlers();
}

void unroute_log() {
  if (--contexts > 0) return;
  wanted = false;
  if (place == 0) return;
  if (ucs_log_num_handlers() == place) {
    ucs_log_pop_handler();
    place = 0;
  } else {
    // Under somebody else's, and only the last can be taken away: ours stays, lets everything pass, and must not be unloaded.
    (void)dlopen(file_of(reinterpret_cast<const void*>(&take)).c_str(), RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
  }
}

}  // namespace gyre::transport::ucx
