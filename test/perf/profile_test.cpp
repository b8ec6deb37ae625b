#include "perf/profile.h"

#include <fmt/format.h>

#include "base/version.h"
#include "test/catch.h"

using namespace gyre;
using namespace gyre::perf;
using nlohmann::ordered_json;

namespace {

ordered_json profile_with(const std::string& jobs, std::string_view by = version) {
  return ordered_json::parse(
      fmt::format(R"({{"links":1,"nccl":{{"machine":"m","version":"{}","date":"d","origin":"o","jobs":[{}]}}}})", by, jobs));
}

ordered_json section_of(const ordered_json& profile) {
  auto section = nccl_section(profile, "p.json");
  REQUIRE(section);
  return *section;
}

}  // namespace

TEST_CASE("a profile's section is this version's, or none; what is wrong in it is an error") {
  CHECK(section_of(ordered_json::object()).is_null());
  CHECK(section_of(profile_with("", "0.0.1")).is_null());
  CHECK(section_of(ordered_json::parse(R"({"nccl":{"jobs":7}})")).is_null());
  CHECK(section_of(profile_with(""))["machine"] == "m");
  const auto wrong = nccl_section(profile_with("7"), "p.json");
  REQUIRE_FALSE(wrong);
  CHECK(wrong.error().what == "p.json: nccl.jobs[0] = 7: must be an object");
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
