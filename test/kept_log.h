// For the life of a test what is logged is kept, from any thread.
#pragma once
#include <algorithm>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "base/log.h"
#include "test/text.h"

namespace gyre::test {

class KeptLog {
 public:
  explicit KeptLog(log::Level level = log::Level::info) {
    {
      const std::lock_guard lock(mutex());
      kept().clear();
    }
    log::set_level(level);
    log::set_sink([](log::Level, std::string_view line) {
      const std::lock_guard lock(mutex());
      kept().emplace_back(line);
    });
  }
  ~KeptLog() {
    log::set_sink(nullptr);
    log::set_level(log::Level::warn);
  }
  KeptLog(const KeptLog&) = delete;
  KeptLog& operator=(const KeptLog&) = delete;

  std::vector<std::string> lines() const {
    const std::lock_guard lock(mutex());
    return kept();
  }
  /// In how many of them.
  size_t count(std::string_view text) const {
    const std::vector<std::string> all = lines();
    return static_cast<size_t>(std::ranges::count_if(all, [&](const std::string& line) { return contains(line, text); }));
  }
  bool has(std::string_view text) const { return count(text) > 0; }

 private:
  static std::mutex& mutex() {
    static std::mutex one;
    return one;
  }
  static std::vector<std::string>& kept() {
    static std::vector<std::string> all;
    return all;
  }
};

}  // namespace gyre::test
