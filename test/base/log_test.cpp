#include "base/log.h"

#include <fcntl.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "base/unique.h"
#include "test/catch.h"

using namespace gyre;

namespace {

std::vector<std::pair<log::Level, std::string>>& lines() {
  static std::vector<std::pair<log::Level, std::string>> all;
  return all;
}

// Puts the log back as it was, whatever a test does to it.
struct Restored {
  Restored() { lines().clear(); }
  Restored(const Restored&) = delete;
  Restored& operator=(const Restored&) = delete;
  ~Restored() {
    log::set_sink(nullptr);
    log::set_level(log::Level::warn);
    log::set_prefix("");
  }
};

void collect() {
  log::set_sink([](log::Level level, std::string_view line) { lines().emplace_back(level, line); });
}

void say_all() {
  log::error("e {}", 1);
  log::warn("w {}", 2);
  log::info("i {}", 3);
  log::debug("d {}", 4);
}

/// What `act` writes to stderr.
template <class Act>
std::string stderr_of(Act act) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return "no pipe";
  const UniqueFd in(ends[0]);
  const UniqueFd before(::dup(STDERR_FILENO));
  {
    const UniqueFd out(ends[1]);
    ::dup2(out.get(), STDERR_FILENO);
  }
  act();
  ::dup2(before.get(), STDERR_FILENO);
  char text[1000];
  const ssize_t got = ::read(in.get(), text, sizeof text);
  return {text, got > 0 ? static_cast<size_t>(got) : 0};
}

}  // namespace

TEST_CASE("lines up to the level reach the sink, formatted and with their level") {
  const Restored restored;
  collect();
  const auto level = static_cast<log::Level>(GENERATE(0, 1, 2, 3));
  log::set_level(level);
  say_all();
  const std::vector<std::pair<log::Level, std::string>> all{
      {log::Level::error, "e 1"}, {log::Level::warn, "w 2"}, {log::Level::info, "i 3"}, {log::Level::debug, "d 4"}};
  CHECK(lines() == std::vector(all.begin(), all.begin() + static_cast<int>(level) + 1));
}

TEST_CASE("warnings are enabled unless somebody says otherwise, information is not") {
  const Restored restored;
  CHECK(log::enabled(log::Level::error));
  CHECK(log::enabled(log::Level::warn));
  CHECK_FALSE(log::enabled(log::Level::info));
}

TEST_CASE("without a sink, lines go to stderr with prefix and level") {
  const Restored restored;
  log::set_prefix("rank 3: ");
  const std::string text = stderr_of([] { say_all(); });
  CHECK(text == "gyre: rank 3: error: e 1\ngyre: rank 3: warning: w 2\n");
}

TEST_CASE("a sink takes all lines, and none go to stderr") {
  const Restored restored;
  collect();
  CHECK(stderr_of([] { say_all(); }).empty());
  CHECK(lines().size() == 2);
}
