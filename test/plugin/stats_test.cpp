#include "plugin/stats.h"

#include <fmt/format.h>
#include <sys/wait.h>

#include <csignal>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/log.h"
#include "test/catch.h"
#include "test/folder.h"
#include "test/plugin/to_peer.h"
#include "test/text.h"

using namespace gyre;
using namespace gyre::plugin;
using namespace std::chrono_literals;
using gyre::test::contains;
using gyre::test::content;
using gyre::test::Folder;
using gyre::test::to_peer;

namespace fs = std::filesystem;

namespace {

constexpr std::chrono::milliseconds never = 0ms;

nlohmann::json json_of(const std::string& path) { return nlohmann::json::parse(content(path)); }

std::string lines;
std::mutex lines_mutex;
/// What is logged while it lives.
class Lines {
 public:
  Lines() {
    lines.clear();
    log::set_sink([](log::Level, std::string_view line) {
      const std::lock_guard lock(lines_mutex);
      lines += std::string(line) + "\n";
    });
  }
  ~Lines() { log::set_sink(nullptr); }
  Lines(const Lines&) = delete;
  Lines& operator=(const Lines&) = delete;
};

/// Threads of this process that write counters.
size_t writers() {
  size_t found = 0;
  for (const auto& task : fs::directory_iterator("/proc/self/task"))
    if (contains(content((task.path() / "comm").string()), "gyre-stats")) ++found;
  return found;
}

/// A name of the test's own: %p is one process's.
std::string with_pid(const std::string& name) { return name + "-%p"; }

}  // namespace

TEST_CASE("without a name nothing is kept, written or started") {
  const Folder folder;
  Stats stats;
  const Counters counters;
  stats.start("", 1ms, {});
  stats.opened(to_peer("beta"), counters);
  CHECK(writers() == 0);
  stats.closed(counters);
  stats.finish();
  stats.at_exit();
  CHECK(stats.path().empty());
  CHECK(folder.files().empty());
}

TEST_CASE("both files are there from the start") {
  const Folder folder;
  Stats stats;
  stats.start(folder / with_pid("stats"), never, {{"eth0", "eth0", "", 1, 1000, {0}}});
  CHECK(json_of(stats.path())["devices"][0]["name"] == "eth0");
  CHECK(contains(content(stats.path() + ".prom"), "gyre_net_device_bits_per_second{"));
  stats.add({"eth0+eth1", "eth0", "", 1, 2000, {0, 1}});
  stats.finish();
  CHECK(json_of(stats.path())["devices"][1]["members"] == std::vector<int>{0, 1});
  CHECK(folder.files().size() == 2);
}

TEST_CASE("all is written when the last connection is closed") {
  const Folder folder;
  Stats stats;
  Counters first;
  Counters second;
  stats.start(folder / with_pid("stats"), never, {});
  stats.opened(to_peer("beta"), first);
  stats.opened(to_peer("gamma"), second);
  first.bytes.add(10);
  second.bytes.add(20);
  second.errors.add(1);
  stats.stranger();
  stats.closed(first);
  stats.settle();
  CHECK(json_of(stats.path())["connections"].empty());  // one is open

  stats.finish();
  auto json = json_of(stats.path());
  CHECK(json["connections"][0]["state"] == "closed");
  CHECK(json["connections"][1]["state"] == "lost");
  CHECK(json["strangers"] == 1);

  second.bytes.add(5);
  stats.closed(second);
  stats.settle();
  json = json_of(stats.path());
  CHECK(json["totals"]["bytes"] == 35);
  CHECK(json["connections"][1]["peer"] == "gamma");
  CHECK(json["connections"][1]["state"] == "closed");
  CHECK(json["connections"][1]["errors"] == 1);
}

TEST_CASE("a thread writes while there are connections, and is gone with the last") {
  const Folder folder;
  Stats stats;
  stats.start(folder / with_pid("stats"), 1ms, {});
  CHECK(writers() == 0);
  for (int round = 0; round < 3; ++round) {
    Counters first;
    const Counters second;
    stats.opened(to_peer("beta"), first);
    stats.opened(to_peer("gamma"), second);
    CHECK(writers() == 1);
    first.bytes.add(1);
    while (json_of(stats.path())["totals"]["bytes"] != round + 1) std::this_thread::yield();
    stats.closed(second);
    stats.settle();
    CHECK(writers() == 1);
    stats.closed(first);
    stats.settle();
    while (writers() > 0) std::this_thread::yield();  // it was joined; the kernel may still list it
  }
  CHECK(json_of(stats.path())["connections"].size() == 6);
}

TEST_CASE("a thread that waits for an hour ends at once") {
  const Folder folder;
  Counters counters;
  {
    Stats stats;
    stats.start(folder / with_pid("stats"), 1h, {});
    stats.opened(to_peer("beta"), counters);
    CHECK(writers() == 1);
    stats.closed(counters);
    stats.settle();
    stats.opened(to_peer("beta"), counters);
  }
  while (writers() > 0) std::this_thread::yield();
  SUCCEED("joined");
}

TEST_CASE("the job's signals do not come to the thread") {
  const Folder folder;
  Stats stats;
  Counters counters;
  stats.start(folder / with_pid("stats"), 1h, {});
  sigset_t before;
  sigset_t after;
  pthread_sigmask(SIG_SETMASK, nullptr, &before);
  stats.opened(to_peer("beta"), counters);
  pthread_sigmask(SIG_SETMASK, nullptr, &after);
  CHECK(sigismember(&after, SIGTERM) == sigismember(&before, SIGTERM));
  for (const auto& task : fs::directory_iterator("/proc/self/task")) {
    if (!contains(content((task.path() / "comm").string()), "gyre-stats")) continue;
    const std::string status = content((task.path() / "status").string());
    const auto blocked = std::stoull(status.substr(status.find("SigBlk:") + 7), nullptr, 16);
    CHECK((blocked >> (SIGTERM - 1) & 1U) == 1);
  }
  stats.closed(counters);
}

TEST_CASE("readers never see half a file") {
  const Folder folder;
  Stats stats;
  Counters counters;
  stats.start(folder / with_pid("stats"), never, {});
  for (int i = 0; i < 50; ++i) {
    stats.opened(to_peer("beta"), counters);
    stats.closed(counters);
  }
  std::atomic<bool> over{false};
  std::thread writer([&] {
    for (int i = 0; i < 30; ++i) stats.finish();
    over = true;
  });
  bool whole = true;
  do {
    whole = whole && nlohmann::json::accept(content(stats.path()));
    whole = whole && contains(content(stats.path() + ".prom"), "gyre_net_strangers_total{");
  } while (!over);
  writer.join();
  CHECK(whole);
}

TEST_CASE("a file that can't be written is one warning, and the job goes on") {
  const Folder folder;
  const Lines logged;
  Stats stats;
  Counters counters;
  stats.start(folder / with_pid("none/stats"), 1ms, {});
  for (int i = 0; i < 3; ++i) {
    stats.opened(to_peer("beta"), counters);
    stats.closed(counters);
    stats.settle();
  }
  stats.at_exit();
  const std::lock_guard lock(lines_mutex);
  CHECK(lines == fmt::format("GYRE_STATS can't be written: {}: No such file or directory\n", stats.path()));
  CHECK(folder.files().empty());
}

TEST_CASE("an exit with open connections is written, and nothing after it") {
  const Folder folder;
  Stats stats;
  Counters counters;
  stats.start(folder / with_pid("stats"), 1ms, {});
  stats.opened(to_peer("beta"), counters);
  counters.bytes.add(7);
  stats.at_exit();
  auto json = json_of(stats.path());
  CHECK(json["totals"]["bytes"] == 7);
  CHECK(json["connections"][0]["state"] == "open");
  counters.bytes.add(1);
  stats.closed(counters);
  stats.finish();
  json = json_of(stats.path());
  CHECK(json["totals"]["bytes"] == 7);
}

TEST_CASE("a process that was forked off writes nothing of its parent's") {
  const Folder folder;
  Stats stats;
  Counters counters;
  stats.start(folder / with_pid("stats"), never, {});
  stats.opened(to_peer("beta"), counters);
  counters.bytes.add(7);
  const pid_t child = ::fork();
  if (child == 0) {
    stats.at_exit();
    ::_exit(0);
  }
  REQUIRE(child > 0);
  int status = -1;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(status == 0);
  CHECK(json_of(stats.path())["totals"]["bytes"] == 0);
  stats.closed(counters);
}

TEST_CASE("connections of many threads are opened, counted and closed while all is written") {
  const Folder folder;
  Stats stats;
  stats.start(folder / with_pid("stats"), 1ms, {});
  constexpr int threads = 4;
  constexpr int rounds = 20;
  std::vector<std::thread> all;
  for (int t = 0; t < threads; ++t) {
    all.emplace_back([&stats, t] {
      for (int i = 0; i < rounds; ++i) {
        Counters counters;
        stats.opened(to_peer(fmt::format("peer {}", t)), counters);
        counters.bytes.add(1);
        stats.stranger();
        stats.closed(counters);
        stats.settle();
      }
    });
  }
  for (auto& thread : all) thread.join();
  while (writers() > 0) std::this_thread::yield();
  const auto json = json_of(stats.path());
  CHECK(json["totals"]["bytes"] == threads * rounds);
  CHECK(json["strangers"] == threads * rounds);
  CHECK(folder.files().size() == 2);
}
