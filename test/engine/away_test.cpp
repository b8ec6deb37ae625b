#include "engine/away.h"

#include <cstdlib>
#include <fstream>
#include <string>

#include "test/catch.h"

using namespace gyre::engine;

namespace {

/// A processor's caches as Linux has them: a folder for each, with files of a line.
struct Caches {
  std::filesystem::path folder;

  Caches() {
    std::string name = (std::filesystem::temp_directory_path() / "gyre-caches-XXXXXX").string();
    REQUIRE(::mkdtemp(name.data()) != nullptr);
    folder = name;
  }
  ~Caches() { std::filesystem::remove_all(folder); }
  Caches(const Caches&) = delete;
  Caches& operator=(const Caches&) = delete;

  void set(const std::string& name, const std::string& size, const std::string& list) const {
    std::filesystem::create_directories(folder / name);
    std::ofstream(folder / name / "size") << size << '\n';
    std::ofstream(folder / name / "shared_cpu_list") << list << '\n';
  }
};

}  // namespace

TEST_CASE("the largest cache, and how many processors share it") {
  const Caches caches;
  caches.set("index0", "32K", "0,64");
  caches.set("index3", "32768K", "0-7,64-71");
  caches.set("index2", "1024K", "0,64");
  CHECK(shared_cache(caches.folder).bytes == 32 << 20);
  CHECK(shared_cache(caches.folder).processors == 16);
  for (const char* list : {"", "x", "7-0", "0-", "-3", "0-99999999999"}) {
    caches.set("index3", "32768K", list);
    CHECK(shared_cache(caches.folder).bytes == 1 << 20);
  }
  caches.set("index2", "large", "0");
  CHECK(shared_cache(caches.folder).bytes == 32 << 10);
  CHECK(shared_cache(caches.folder / "nothing").bytes == 0);
}

TEST_CASE("results go past a cache where they take half of it with those of the ranks that share it") {
  const SharedCache eight{32 << 20, 8};
  CHECK(Away::of({64, false, 64}, eight, false).results == 2 << 20);
  CHECK(Away::of({64, false, 8}, eight, false).results == 16 << 20);
  CHECK(Away::of({64, false, 1}, eight, false).results == 16 << 20);
  CHECK(Away::of({2, true, 8}, {32 << 20, 2}, false).results == 2 << 20);
  CHECK(Away::of({2, true, 8}, {32 << 20, 64}, false).results == 2 << 20);
  CHECK(Away::of({0, true, 2}, eight, false).results == 8 << 20);  // of processors nothing is known
  CHECK(Away::of({64, false, 64}, {}, false).results == Away::never);
}

TEST_CASE("messages go past the caches where ranks have processors of their own, or of several caches") {
  CHECK(Away::of({8, false, 8}, {32 << 20, 8}, false).messages == 8192);
  CHECK(Away::of({8, true, 9}, {32 << 20, 8}, false).messages == Away::never);
  CHECK(Away::of({16, true, 17}, {32 << 20, 8}, false).messages == 8192);
  CHECK(Away::of({8, true, 9}, {}, false).messages == Away::never);
  CHECK(Away::of({8, false, 8}, {32 << 20, 8}, false).calls == 64 << 10);
  CHECK(Away::of({8, false, 8}, {32 << 20, 1}, true).messages == Away::never);  // whatever the system says
}
