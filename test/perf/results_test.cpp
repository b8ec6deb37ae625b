#include "perf/results.h"

#include "test/catch.h"
#include "test/perf/written.h"

using namespace gyre;
using namespace gyre::perf;
using gyre::test::sample;
using gyre::test::sweep_head;
using gyre::test::sweep_row;
using gyre::test::Written;

namespace {

std::string wrong(const std::string& text) {
  const Written file(text);
  const auto results = read_results(file.path());
  return results ? "" : results.error().what.substr(file.path().size());
}

}  // namespace

TEST_CASE("a sweep's lines are read back, cycles of a call together") {
  const Written file(sweep_head(R"("algorithm":"ring")") + sweep_row(8, 2) + sweep_row(16, 3) + sweep_row(8, 4) +
                     R"({"end":{"rows":3}})"
                     "\n");
  const auto results = read_results(file.path());
  REQUIRE(results);
  CHECK((results->benchmark().name == "all_reduce" && results->ranks() == 4 && !results->samples && results->asked == "ring"));
  REQUIRE(results->points.size() == 4);
  const Point& first = results->points[0];
  CHECK((first.bytes == 8 && !first.in_place && first.transport == "shm" && first.redop == "sum" && first.root == -1 &&
         first.type == "float"));
  CHECK(first.us == std::vector<double>{2, 4});
  CHECK((first.median_us() == 3 && first.least_us() == 2 && first.most_us() == 4 && first.predicted_us == 3));
  CHECK((results->points[1].in_place && results->points[1].us == std::vector<double>{4, 8}));
  CHECK(results->origin() == "gyre 0.1.0 (abc), P, 2 processors, kernel k, d");
}

TEST_CASE("the one document that versions before wrote is read, too") {
  std::string head = sweep_head();
  head.resize(head.size() - 2);
  std::string row = sweep_row(8, 2);
  row.pop_back();
  const Written file(head + R"(,"results":[)" + row + "]}");
  const auto results = read_results(file.path());
  REQUIRE(results);
  CHECK((results->points.size() == 2 && results->points[0].us == std::vector<double>{2} && results->asked == "auto"));
}

TEST_CASE("samples of measure are read, with or without a line about the machine") {
  for (const char* head : {"", R"({"gyre":"1","machine":{}})"
                               "\n"}) {
    const Written file(head + sample(8, 2, "ring") + sample(8, 3, "tree") + sample(8, 5, "ring"));
    const auto results = read_results(file.path());
    REQUIRE(results);
    CHECK((results->samples && results->points.size() == 2 && results->points[0].us.size() == 6));
    CHECK((results->points[1].algorithm == "tree" && results->points[1].processors == 2));
  }
}

TEST_CASE("samples of several collectives are points of their own") {
  const std::string of_broadcast = R"({"collective":"broadcast",)" + sample(8, 3, "ring").substr(1);
  const Written file(of_broadcast + sample(8, 2, "ring"));
  const auto results = read_results(file.path());
  REQUIRE(results);
  REQUIRE((results->samples && results->points.size() == 2));
  CHECK((results->points[0].benchmark->name == "broadcast" && results->points[0].redop.empty() && results->points[0].root == 0));
  CHECK((results->points[1].benchmark->name == "all_reduce" && results->points[1].redop == "sum" && results->points[1].root == -1));
}

TEST_CASE("a file that is no results is an error that names the line") {
  CHECK(wrong("").ends_with(": no results: the file is empty"));
  CHECK(wrong(sweep_head()).ends_with(": no results: the sweep has no rows"));
  CHECK(wrong("hello\n").starts_with(":1: no result: the line is no JSON object"));
  CHECK(wrong(sweep_head() + sweep_row(8, 2) + "{\"bytes\":").starts_with(":3: no result: the line is no JSON object"));
  CHECK(wrong(sweep_head() + "{\"bytes\":8}\n").starts_with(":2: no result: "));
  CHECK(wrong(sweep_head() + sweep_row(8, -1)).starts_with(":2: no result: time_us must be positive"));
  CHECK(wrong(sweep_head() + sweep_row(8, 1) + sweep_head()).starts_with(":3: no result: a second run begins"));
  CHECK(wrong(sweep_head("\"x\":1", 0) + sweep_row(8, 1)).starts_with(":1: no result: ranks must be a number from 1"));
  CHECK(wrong(sweep_head("\"x\":1", 2, "all_redcue")).starts_with(":1: no result: 'all_redcue' is no collective"));
  CHECK(wrong(sweep_head(R"("machine":[1])") + sweep_row(8, 1)) == ":1: no result: machine must be a JSON object");
  CHECK(wrong(sweep_head(R"("command":[1])") + sweep_row(8, 1)) == ":1: no result: command must be text");
  CHECK(wrong("{\"machine\":[1]}\n" + sample(8, 2, "ring")) == ":1: no result: machine must be a JSON object");
  CHECK(wrong(sample(8, 2, "ring") + "{}\n").starts_with(":2: not a sample: "));
  CHECK(wrong("[1,2]\n").starts_with(":1: no result: "));
  const auto missing = read_results("/no/such/file");
  REQUIRE_FALSE(missing);
  CHECK(missing.error().what == "/no/such/file: No such file or directory");
  const auto folder = read_results("/tmp");
  REQUIRE_FALSE(folder);
  CHECK(folder.error().what.starts_with("/tmp: "));
}
