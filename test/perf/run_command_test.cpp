#include "perf/run_command.h"

#include <fmt/format.h>

#include <csignal>
#include <cstdlib>
#include <thread>

#include "test/catch.h"
#include "test/folder.h"

using namespace gyre;
using namespace gyre::perf;
using namespace std::chrono_literals;

namespace {

/// The process whose number the file has: killed, but perhaps not yet gone.
void await_gone(const std::string& file) {
  const std::string state = fmt::format("/proc/{}/stat", std::stoi(test::content(file)));
  while (test::content(state).find(") S") != std::string::npos) std::this_thread::sleep_for(1ms);
}

}  // namespace

TEST_CASE("a command's exit code, output and last line are kept") {
  const auto done = run_command({"sh", "-c", "echo out; echo 'first' >&2; echo 'why it failed' >&2; echo ------- >&2; exit 3"}, {}, {60s});
  REQUIRE(done);
  CHECK(done->code == 3);
  CHECK(done->end() == "exit code 3");
  CHECK(done->out == "out\n");
  CHECK(done->last_line() == "why it failed");
  CHECK(Finished{1, "only\n\n  here", ""}.last_line() == "here");
  CHECK(Finished{1, "", "---\n\n"}.last_line().empty());
  CHECK(run_command({"sh", "-c", "kill -9 $$"}, {}, {60s})->end() == "exit code 137 (Killed)");
  CHECK(run_command({"cat"}, {}, {60s})->code == 0);  // there is no input
  const auto none = run_command({"/nowhere/all_reduce_perf", "-b", "8"}, {}, {60s});
  REQUIRE_FALSE(none);
  CHECK(none.error().what == "/nowhere/all_reduce_perf: No such file or directory");
}

TEST_CASE("a command gets this process's environment with what differs") {
  ::setenv("GYRE_TEST_KEPT", "1", 1);
  ::setenv("GYRE_TEST_GONE", "2", 1);
  ::setenv("GYRE_TEST_SET", "3", 1);
  const auto done = run_command({"sh", "-c", "echo $GYRE_TEST_KEPT,$GYRE_TEST_GONE,$GYRE_TEST_SET,$GYRE_TEST_NEW"},
                                {{"GYRE_TEST_GONE", std::nullopt}, {"GYRE_TEST_SET", "4"}, {"GYRE_TEST_NEW", "5"}}, {60s});
  for (const char* name : {"GYRE_TEST_KEPT", "GYRE_TEST_GONE", "GYRE_TEST_SET"}) ::unsetenv(name);
  REQUIRE(done);
  CHECK(done->out == "1,,4,5\n");
}

TEST_CASE("a command may open its outputs anew") {
  const auto done = run_command({"sh", "-c", "echo a; echo b > /dev/stdout; echo c; echo d > /dev/stderr; echo e >&2"}, {}, {60s});
  REQUIRE(done);
  CHECK(done->out == "a\nb\nc\n");
  CHECK(done->err == "d\ne\n");
}

TEST_CASE("a command that prints without end is ended") {
  const auto done = run_command({"cat", "/dev/zero"}, {}, {60s, 1 << 20});
  REQUIRE_FALSE(done);
  CHECK(done.error().what == "printed more than 1 MiB");
}

TEST_CASE("what a command leaves behind is ended, even where it closed its outputs") {
  const test::Folder folder;
  const std::string file = folder / "pid";
  const auto done = run_command({"sh", "-c", fmt::format("sleep 1000 > /dev/null 2>&1 & echo $! > {}", file)}, {}, {60s});
  REQUIRE(done);
  CHECK(done->code == 0);
  await_gone(file);
}

TEST_CASE("a signal that this process ignores ends no command") {
  const auto before = std::signal(SIGHUP, SIG_IGN);
  const auto done = run_command({"sh", "-c", "kill -HUP $PPID; kill -HUP $$; sleep 0.1; echo on"}, {}, {60s});
  std::signal(SIGHUP, before);
  REQUIRE(done);
  CHECK(done->out == "on\n");
}

TEST_CASE("a signal that ends this process ends the command first") {
  static volatile std::sig_atomic_t came;
  came = 0;
  const auto before = std::signal(SIGQUIT, [](int signal) { came = signal; });
  const auto done = run_command({"sh", "-c", "kill -QUIT $PPID; sleep 1000"}, {}, {60s});
  std::signal(SIGQUIT, before);
  CHECK(came == SIGQUIT);
  REQUIRE_FALSE(done);
  CHECK(done.error().what == "ended, as was this process: Quit");
}

TEST_CASE("an exit code is known where this process was started with its children's ends ignored") {
  const auto before = std::signal(SIGCHLD, SIG_IGN);
  const auto done = run_command({"sh", "-c", "exit 7"}, {}, {60s});
  std::signal(SIGCHLD, before);
  REQUIRE(done);
  CHECK(done->code == 7);
}

TEST_CASE("a command that does not end in time is ended with all that it has started") {
  const test::Folder folder;
  const std::string file = folder / "pid";
  for (auto limit = 1s; test::content(file).empty(); limit *= 2) {  // until it came so far
    const auto done = run_command({"sh", "-c", fmt::format("sleep 1000 & echo $! > {}; wait", file)}, {}, {limit});
    REQUIRE_FALSE(done);
    CHECK(done.error().code == Code::timeout);
    CHECK(done.error().what == fmt::format("did not end within {} s", limit.count()));
  }
  await_gone(file);
}
