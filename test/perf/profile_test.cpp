#include "perf/profile.h"

#include <fmt/format.h>

#include <filesystem>
#include <thread>
#include <vector>

#include "base/version.h"
#include "test/catch.h"
#include "test/folder.h"
#include "test/text.h"

using namespace gyre;
using namespace gyre::perf;
using nlohmann::ordered_json;

namespace {

ordered_json profile_with(const std::string& jobs, std::string_view by = profile_version) {
  return ordered_json::parse(
      fmt::format(R"({{"links":1,"nccl":{{"machine":"m","version":"{}","date":"d","origin":"o","jobs":[{}]}}}})", by, jobs));
}

ordered_json section_of(const ordered_json& profile) {
  auto section = nccl_section(profile, "p.json");
  REQUIRE(section);
  CHECK(section->said == "");
  return section->json;
}

}  // namespace

TEST_CASE("a profile's section is this version's, or none; what is wrong in it is an error") {
  CHECK(section_of(ordered_json::object()).is_null());
  CHECK(section_of(profile_with(""))["machine"] == "m");
  const auto wrong = nccl_section(profile_with("7"), "p.json");
  REQUIRE_FALSE(wrong);
  CHECK(wrong.error().what == "p.json: nccl.jobs[0] = 7: must be an object");
  CHECK_FALSE(nccl_section(ordered_json::parse(R"({"nccl":7})"), "p.json"));  // nobody's version: somebody's hand
  CHECK_FALSE(nccl_section(ordered_json::parse(R"({"nccl":{"jobs":[]}})"), "p.json"));
}

TEST_CASE("of another version's section stays what was measured of NCCL alone, and what does not is said") {
  const auto carried = [](const std::string& jobs) { return *nccl_section(profile_with(jobs, "0.0.1"), "p.json"); };
  const std::string begins = fmt::format("p.json: its \"nccl\" was made by gyre 0.0.1, and this is {}; ", profile_version);
  const auto kept = carried(
      R"({"ranks_per_node":8,"nodes":2,"choices":{"reduce":[[0,"ring/ll"]],"all_reduce":[[0,"tree/ll"]],"broadcast":[[0,"gyre","ring/ll"]]},)"
      R"("measured":{"all_reduce":{"us":{}},"broadcast":{}}},{"ranks_per_node":8,"nodes":1,"choices":{"reduce":[[0,"ring/ll"]]}})");
  CHECK(kept.said == begins +
                         "what was measured of NCCL alone stays; left out: reduce of 8 ranks on each of 2 nodes (predicted), broadcast of "
                         "8 ranks on each of 2 nodes (by gyre's times, too), reduce of 8 ranks on one node (predicted)");
  CHECK(kept.json["jobs"].dump() ==
        R"([{"ranks_per_node":8,"nodes":2,"choices":{"all_reduce":[[0,"tree/ll"]]},"measured":{"all_reduce":{"us":{}}}}])");
  CHECK(section_of({{"nccl", kept.json}}) == kept.json);  // which the tuner takes
  const auto none = carried(R"({"ranks_per_node":8,"nodes":2,"choices":{"reduce":[[0,"ring/ll"]]}})");
  CHECK((none.json.is_null() && none.said == begins + "nothing of it holds; left out: reduce of 8 ranks on each of 2 nodes (predicted)"));
  const auto unknown = carried("7");
  CHECK(unknown.json.is_null());
  CHECK(unknown.said == "p.json: its \"nccl\" is another version's, and nothing of it holds: p.json: nccl.jobs[0] = 7: must be an object");
}

TEST_CASE("a profile that many change at a time loses nothing") {
  const test::Folder folder;
  const std::string file = folder / "p.json";
  constexpr int changers = 4, times = 25;
  {
    std::vector<std::jthread> all;
    for (int i = 0; i < changers; ++i) {
      all.emplace_back([&] {
        for (int k = 0; k < times; ++k) {
          const Status changed = change_profile(file, [](ordered_json& profile) {
            profile["changes"] = profile.value("changes", 0) + 1;
            return Status();
          });
          if (!changed) std::terminate();
        }
      });
    }
  }
  CHECK(*read_profile(file) == ordered_json{{"changes", changers * times}});
  CHECK(folder.files() == std::vector<std::string>{"p.json"});
}

TEST_CASE("a profile is changed where a link leads, and who may read it stays") {
  const test::Folder folder;
  namespace fs = std::filesystem;
  fs::create_directory(folder / "real");
  fs::create_symlink("real/p.json", folder / "p.json");
  const auto change = [&](int to) {
    return change_profile(folder / "p.json", [to](ordered_json& profile) {
      profile = {{"is", to}};
      return Status();
    });
  };
  REQUIRE(check_profile(folder / "p.json"));
  CHECK_FALSE(fs::exists(folder / "real/p.json"));
  REQUIRE(change(1));
  constexpr auto own = fs::perms::owner_read | fs::perms::owner_write;
  fs::permissions(folder / "real/p.json", own);
  REQUIRE(change(2));
  CHECK(fs::is_symlink(folder / "p.json"));
  CHECK(fs::status(folder / "real/p.json").permissions() == own);
  CHECK((*read_profile(folder / "real/p.json"))["is"] == 2);
}

TEST_CASE("a profile that can't be written, or would be too large to be read, is an error before anything is lost") {
  const test::Folder folder;
  std::filesystem::create_directory(folder / "taken");
  CHECK(test::error_of(check_profile(folder / "taken")) == folder / "taken" + ": Is a directory");
  CHECK(test::error_of(check_profile(folder / "none/p.json")) == folder / "none/p.json" + ": No such file or directory");
  CHECK(test::error_of(check_profile("/proc/p.json")).starts_with("/proc/p.json: "));
  const std::string longest(253, 'p');  // is a name, but none with what is behind it in between
  CHECK(test::error_of(check_profile(folder / longest)).ends_with("File name too long"));
  const auto grown = change_profile(folder / "p.json", [](ordered_json& profile) {
    profile["text"] = std::string(2 << 20, '.');
    return Status();
  });
  CHECK(test::error_of(grown).find("would have 2097168 bytes, must have 1048576 at most") != std::string::npos);
}

TEST_CASE("measured choices replace the collective's in their job, and nothing else") {
  ordered_json section =
      section_of(profile_with(R"({"ranks_per_node":8,"nodes":2,"choices":{"reduce":[[0,"ring/ll"]],"all_reduce":[[0,"ring/ll"]]}})"));
  const ordered_json choices = ordered_json::parse(R"([[0,"tree/ll"]])");
  put_measured(section, {8, 2, "all_reduce", choices, {{"command", "c"}}});
  put_measured(section, {8, 4, "all_reduce", choices, {{"command", "e"}}});
  CHECK(section["jobs"].dump() ==
        R"([{"ranks_per_node":8,"nodes":2,"choices":{"reduce":[[0,"ring/ll"]],"all_reduce":[[0,"tree/ll"]]},)"
        R"("measured":{"all_reduce":{"command":"c"}}},)"
        R"({"ranks_per_node":8,"nodes":4,"choices":{"all_reduce":[[0,"tree/ll"]]},"measured":{"all_reduce":{"command":"e"}}}])");
  CHECK(nccl_section({{"nccl", section}}, "p.json"));
}

TEST_CASE("a new section keeps what was measured, and such a machine's jobs with other numbers of ranks") {
  const ordered_json before = section_of(profile_with(
      R"({"ranks_per_node":8,"nodes":2,"choices":{"reduce":[[0,"ring/ll"]],"all_reduce":[[0,"tree/ll"]]},"measured":{"all_reduce":{}}},)"
      R"({"ranks_per_node":4,"nodes":1,"choices":{"reduce":[[0,"ring/ll"]]}})"));
  const auto kept_by = [&](const char* machine) {
    ordered_json section = section_of(
        profile_with(R"({"ranks_per_node":8,"nodes":2,"choices":{"reduce":[[0,"ring/simple"]],"all_reduce":[[0,"ring/simple"]]}})"));
    section["machine"] = machine;
    keep_jobs(before, section, 8);
    return section["jobs"].dump();
  };
  const std::string measured =
      R"([{"ranks_per_node":8,"nodes":2,"choices":{"reduce":[[0,"ring/simple"]],"all_reduce":[[0,"tree/ll"]]},"measured":{"all_reduce":{}}})";
  CHECK(kept_by("m") == measured + R"(,{"ranks_per_node":4,"nodes":1,"choices":{"reduce":[[0,"ring/ll"]]}}])");
  CHECK(kept_by("another") == measured + "]");
}
