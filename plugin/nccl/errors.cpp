#include "plugin/nccl/errors.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <deque>
#include <exception>
#include <mutex>
#include <string>

#include "base/log.h"
#include "plugin/net_log.h"

namespace gyre::plugin {
namespace nccl {
namespace {

constexpr size_t kept = 256;  // texts that a program may still be reading
std::atomic<const char*> last{""};

void keep(std::string text) {
  static auto& mutex = *new std::mutex;
  static auto& texts = *new std::deque<std::string>;
  const std::lock_guard lock(mutex);
  if (texts.size() == kept) texts.pop_front();
  last.store(texts.emplace_back(std::move(text)).c_str(), std::memory_order_release);
}

}  // namespace

const char* last_error() noexcept { return last.load(std::memory_order_acquire); }
void forget_last_error(const char* before) noexcept { last.compare_exchange_strong(before, "", std::memory_order_acq_rel); }

void start_log(const Config& config) {
  const auto& choices = config.log.choices;
  log::set_level(static_cast<log::Level>(std::find(choices.begin(), choices.end(), *config.log) - choices.begin()));
}

}  // namespace nccl

// The rim's (plugin/net_log.h), here with no logger of NCCL's.
void report(const char* slot, const char* what, const char* file, int line) noexcept {
  try {
    nccl::keep(fmt::format("{}: {}", slot, what));
    const char* name = std::strrchr(file, '/');
    log::error("{}: {} ({}:{})", slot, what, name == nullptr ? file : name + 1, line);
  } catch (const std::exception&) {
    nccl::last.store("no memory is left, not even to say for what", std::memory_order_release);  // the caller still gets the code
  }
}

}  // namespace gyre::plugin
