#include "plugin/stats_file.h"

#include <filesystem>

#include "base/file.h"
#include "test/catch.h"
#include "test/folder.h"
#include "test/text.h"

using namespace gyre;
using namespace gyre::plugin;
using gyre::test::content;
using gyre::test::Folder;

namespace fs = std::filesystem;

TEST_CASE("the file's name has host and process where it says so") {
  CHECK(stats_path("/a/%h-%p.json", "alpha", 12) == "/a/alpha-12.json");
  CHECK(stats_path("/a/%p", "alpha", 12) == "/a/12");
  CHECK(stats_path("/a/100%%-%p%", "alpha", 12) == "/a/100%-12%");
  CHECK(stats_path("/a/%x%p", "alpha", 12) == "/a/%x12");
}

TEST_CASE("ranks that share a name without %p have files of their own") {
  CHECK(stats_path("/a/stats", "alpha", 12) == "/a/stats.12");
  CHECK(stats_path("/a/%h", "alpha", 12) == "/a/alpha.12");
  CHECK(stats_path("/a/%%p", "alpha", 12) == "/a/%p.12");
}

TEST_CASE("a relative name stays where it was when the job changes its folder") {
  CHECK(stats_path("stats", "alpha", 12) == fs::current_path() / "stats.12");
}

TEST_CASE("a file is replaced as a whole and leaves nothing beside it") {
  const Folder folder;
  const std::string file = folder / "file";
  REQUIRE(replace_file(file, "first"));
  const std::ifstream reader(file);  // has the old one open
  REQUIRE(replace_file(file, "second"));
  std::string seen(std::istreambuf_iterator<char>(reader.rdbuf()), {});
  CHECK(seen == "first");
  CHECK(content(file) == "second");
  CHECK(folder.files() == std::vector<std::string>{"file"});
}

TEST_CASE("a link of somebody else's under the name in between is not followed") {
  const Folder folder;
  REQUIRE(replace_file(folder / "precious", "kept"));
  fs::create_symlink(folder / "precious", folder / "file.new");
  REQUIRE(replace_file(folder / "file", "text"));
  CHECK(content(folder / "precious") == "kept");
  CHECK(content(folder / "file") == "text");
}

TEST_CASE("a file that can't be written is an error that names it and why") {
  const Folder folder;
  CHECK(test::error_of(replace_file(folder / "none/file", "")) == folder / "none/file" + ": No such file or directory");
  fs::create_directory(folder / "taken");
  CHECK(test::error_of(replace_file(folder / "taken", "")) == folder / "taken" + ": Is a directory");
  CHECK(folder.files() == std::vector<std::string>{"taken"});
}
