#include "plugin/net_log.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <exception>
#include <mutex>

#include "base/config.h"
#include "base/log.h"

namespace gyre::plugin {
namespace {

std::atomic<ncclDebugLogger_t> nccl_logger{nullptr};
std::mutex log_users_mutex;
int log_users = 0;  // inits without their finalize

constexpr unsigned long every_subsystem = ~0UL;
// NCCL shows INIT unless told otherwise, so that devices and connections are seen with NCCL_DEBUG=INFO alone.
constexpr unsigned long information = NCCL_INIT | NCCL_NET;

void to_nccl(log::Level level, std::string_view line) {
  const ncclDebugLogger_t logger = nccl_logger;
  if (logger == nullptr) return;
  const int length = static_cast<int>(std::min<size_t>(line.size(), 4096));
  const bool warning = level <= log::Level::warn;
  logger(warning                     ? NCCL_LOG_WARN
         : level == log::Level::info ? NCCL_LOG_INFO
                                     : NCCL_LOG_TRACE,
         warning ? every_subsystem : information, "gyre", 0, "NET/gyre: %.*s", length, line.data());
}

/// GYRE_LOG's level where it is set and right; whether it is right is said by who reads all options.
log::Level wanted_level(log::Level otherwise) try {
  const auto config = Config::from_environment();
  if (!config || config->log.origin == "default") return otherwise;
  const auto& choices = config->log.choices;
  return static_cast<log::Level>(std::find(choices.begin(), choices.end(), *config->log) - choices.begin());
} catch (const std::exception&) {
  return otherwise;  // no memory to read options
}

/// NCCL shows it before a warning; the folders of whoever compiled it are of no use there.
const char* file_name(const char* path) {
  if (path == nullptr) return "gyre";
  const char* slash = std::strrchr(path, '/');
  return slash == nullptr ? path : slash + 1;
}

}  // namespace

void start_log(ncclDebugLogger_t logger) noexcept {
  const log::Level level = wanted_level(logger != nullptr ? log::Level::info : log::Level::warn);
  const std::lock_guard lock(log_users_mutex);
  ++log_users;
  nccl_logger = logger;
  log::set_level(level);
  log::set_sink(logger != nullptr ? to_nccl : nullptr);
}

void end_log() noexcept {
  const std::lock_guard lock(log_users_mutex);
  if (--log_users > 0) return;
  log_users = 0;
  log::set_sink(nullptr);
  nccl_logger = nullptr;
  log::set_level(log::Level::warn);
}

void report(const char* slot, const char* what, const char* file, int line) noexcept {
  if (const ncclDebugLogger_t logger = nccl_logger; logger != nullptr) {
    logger(NCCL_LOG_WARN, every_subsystem, file_name(file), line, "NET/gyre: %s: %s", slot, what);
    return;
  }
  try {
    log::error("{}: {} ({}:{})", slot, what, file_name(file), line);
  } catch (const std::exception&) {
    return;  // no memory for the line: NCCL still gets the code
  }
}

}  // namespace gyre::plugin
