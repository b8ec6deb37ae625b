#include "plugin/net_log.h"

#include <cstdlib>

#include "test/catch.h"
#include "test/plugin/rim.h"

using namespace gyre;
using namespace gyre::plugin;

namespace {

void other_logger(ncclDebugLogLevel, unsigned long, const char*, int, const char*, ...) { logged().push_back({}); }

struct OptionLog {
  explicit OptionLog(const char* value) { ::setenv("GYRE_LOG", value, 1); }
  OptionLog(const OptionLog&) = delete;
  OptionLog& operator=(const OptionLog&) = delete;
  ~OptionLog() { ::unsetenv("GYRE_LOG"); }
};

void log_all_levels() {
  log::error("lost {}", 1);
  log::warn("odd");
  log::info("device eth0 50 % used");
  log::debug("detail");
}

}  // namespace

TEST_CASE("lines reach NCCL's logger with its levels and subsystems, and without a line's end") {
  const Rim rim;
  log_all_levels();
  REQUIRE(logged().size() == 3);
  CHECK(logged()[0].level == NCCL_LOG_WARN);
  CHECK(logged()[0].text == "NET/gyre: lost 1");
  CHECK(logged()[1].level == NCCL_LOG_WARN);
  CHECK(logged()[2].level == NCCL_LOG_INFO);
  CHECK(logged()[2].flags == (NCCL_INIT | NCCL_NET));
  CHECK(logged()[2].text == "NET/gyre: device eth0 50 % used");
}

TEST_CASE("GYRE_LOG says what is logged, to NCCL as well") {
  const auto [value, lines] = GENERATE(std::tuple("error", 1), std::tuple("warn", 2), std::tuple("info", 3), std::tuple("debug", 4));
  const OptionLog option(value);
  const Rim rim;
  log_all_levels();
  CHECK(logged().size() == static_cast<size_t>(lines));
  if (lines == 4) CHECK(logged()[3].level == NCCL_LOG_TRACE);
}

TEST_CASE("a wrong GYRE_LOG leaves the log as it is; init says what is wrong") {
  const OptionLog option("loud");
  const Rim rim;
  log_all_levels();
  CHECK(logged().size() == 3);
}

TEST_CASE("the last logger given is used, until as many finalizes as inits came") {
  const Rim rim;  // the first init
  start_log(other_logger);
  log::info("to the other");
  REQUIRE(logged().size() == 1);
  CHECK(logged()[0].text.empty());
  end_log();
  log::warn("to the other still");
  CHECK(logged().size() == 2);
  end_log();
  CHECK_FALSE(log::enabled(log::Level::info));
  start_log(keep_line);  // Rim's own end follows
  log::info("anew");
  CHECK(logged().back().text == "NET/gyre: anew");
}

TEST_CASE("without a logger, information is not asked for") {
  const Rim rim;
  start_log(nullptr);
  CHECK(log::enabled(log::Level::warn));
  CHECK_FALSE(log::enabled(log::Level::info));
  end_log();
}

TEST_CASE("a failed init does not keep its logger") {
  fake_net() = FakeNet{};
  fake_net().error = Error{Code::system, "no network"};
  logged().clear();
  void* context = nullptr;
  CHECK(ncclNetPlugin_v12.init(&context, 1, nullptr, keep_line, nullptr) == ncclSystemError);
  CHECK(logged().size() == 1);
  fake_net() = FakeNet{};
  CHECK_FALSE(log::enabled(log::Level::info));
}

TEST_CASE("a long line is cut, not lost") {
  const Rim rim;
  log::warn("{}", std::string(10000, 'x'));
  REQUIRE(logged().size() == 1);
  CHECK(logged()[0].text.size() > 4000);
}
