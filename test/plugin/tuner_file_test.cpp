#include "plugin/tuner_file.h"

#include <fstream>

#include "base/hash.h"
#include "base/version.h"
#include "test/catch.h"
#include "test/folder.h"

using namespace gyre;
using namespace gyre::plugin;
using gyre::test::Folder;

TEST_CASE("a file of rules is read once in a process, and one that can't be read is an error that names it") {
  const Folder folder;
  const auto written = [&](const std::string& name, const char* text) { return std::ofstream(folder / name) << text, folder / name; };
  CHECK(tuner_file("").rules->empty());
  CHECK(tuner_file("").hash == 0);
  const std::string path = written("rules.csv", "allreduce,0,8,ring,ll,-1,-1,-1\n");
  REQUIRE(tuner_file(path).rules);
  CHECK(tuner_file(path).rules->size() == 1);
  written("rules.csv", "nonsense");
  CHECK(tuner_file(path).rules->size() == 1);
  const auto& same = tuner_file(written("same", "allreduce,0,8,ring,ll,-1,-1,-1\n"));
  const auto& other = tuner_file(written("other", "allreduce,0,9,ring,ll,-1,-1,-1\n"));
  CHECK(same.hash == tuner_file(path).hash);
  CHECK(other.hash != same.hash);
  REQUIRE(tuner_file(written("empty", "")).rules);
  CHECK(tuner_file(folder / "empty").rules->empty());
  CHECK(tuner_file(folder / "empty").hash != 0);
  const auto& large = tuner_file(written("large", std::string((1 << 20) + 1, '#').c_str()));
  REQUIRE_FALSE(large.rules);
  CHECK(large.rules.error().what == "GYRE_TUNER_FILE=" + (folder / "large") + ": 1048577 bytes, must be 1048576 at most");
  for (const auto& [name, why] : {std::pair{"absent", "No such file or directory"}, {"", "no regular file"}}) {
    const auto& refused = tuner_file(folder / name);
    REQUIRE_FALSE(refused.rules);
    CHECK(refused.rules.error().what == "GYRE_TUNER_FILE=" + (folder / name) + ": " + why);
    CHECK(refused.hash != 0);
  }
}

TEST_CASE("what is wrong in a file is said with the option that names it") {
  const Folder folder;
  for (const auto& [name, text, where] : {std::tuple{"rules.csv", "\nallreduce,0,8,rng,ll,-1,-1,-1\n", ":2:15: algorithm is \"rng\""},
                                          {"profile.json", R"({"nccl":{"version":7}})", ": nccl.version = 7: must be a text"}}) {
    std::ofstream(folder / name) << text;
    const auto& wrong = tuner_file(folder / name);
    REQUIRE_FALSE(wrong.rules);
    INFO(wrong.rules.error().what);
    CHECK(wrong.rules.error().what.starts_with("GYRE_TUNER_FILE=" + (folder / name) + where));
  }
}

TEST_CASE("a file that begins with a brace is a profile, with all else that may stand in it, and its bytes are what peers compare") {
  const Folder folder;
  const auto written = [&](const std::string& name, const std::string& text) {
    return std::ofstream(folder / name) << text, folder / name;
  };
  const std::string profile =
      "\xef\xbb\xbf\n {\"links\": 7, \"nccl\": {\"machine\": \"m\", \"version\": \"" + std::string(profile_version) +
      R"(", "date": "", "origin": "", "jobs": [{"ranks_per_node": 8, "nodes": 1, "choices": {"reduce": [[0, "ring/ll"]]}}]}})";
  const auto& file = tuner_file(written("profile.json", profile));
  REQUIRE(file.rules);
  CHECK(file.rules->size() == 1);
  CHECK(file.hash == fnv1a(profile));
  const auto& wrong = tuner_file(written("wrong.json", "{"));
  REQUIRE_FALSE(wrong.rules);
  CHECK(wrong.rules.error().what == "GYRE_TUNER_FILE=" + (folder / "wrong.json") + ": is not JSON: line 1, column 2");
  CHECK(wrong.hash == fnv1a("{"));
}
