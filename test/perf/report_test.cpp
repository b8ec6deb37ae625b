#include "perf/report_json.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <sstream>

#include "test/catch.h"

using namespace gyre;
using namespace gyre::perf;

namespace {

Row row_of(const Benchmark& benchmark, int ranks = 4) {
  Row row;
  row.call = case_of(benchmark, ranks, 4096, DataType::float32, ReduceOp::max, 2);
  row.algorithm = "ring";
  row.out_of_place = {12.5, 0.33, 0.49, 0, true};
  if (benchmark.has_in_place) row.in_place = Measured{13.25, 0.31, 0.46, 7, true};
  return row;
}

std::vector<std::string> words(const std::string& line) {
  std::istringstream stream(line);
  return {std::istream_iterator<std::string>(stream), {}};
}

using Words = std::vector<std::string>;

// The lines of a file that a sweep wrote.
std::vector<nlohmann::json> written(const SweepOptions& options, const std::vector<Row>& rows, const Groups& groups = {}) {
  const std::string path = fmt::format("/tmp/gyre-report-test-{}.json", getpid());
  Totals totals;
  const auto config = Config::from({"GYRE_SLOTS=4", "GYRE_WAIT=yield"});
  auto json = JsonLines::open(path, {"gyre-perf reduce", 4, {"", "shm", "shm", "shm"}, "auto", groups, *config}, options);
  REQUIRE(json);
  for (const Row& row : rows) {
    totals.add(row);
    REQUIRE(json->row(row));
  }
  REQUIRE(json->end({totals, true, 1.5}));
  std::ifstream file(path);
  std::vector<nlohmann::json> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(nlohmann::json::parse(line, nullptr, false));
  std::remove(path.c_str());
  REQUIRE(lines.size() == rows.size() + 2);
  return lines;
}

constexpr Columns plain{};
constexpr Columns predicting{.predicted = true};

}  // namespace

TEST_CASE("a row has nccl-tests' columns, and N/A where nccl-tests has no value") {
  CHECK(words(table_row(row_of(benchmark_of(Collective::reduce)), plain)) ==
        Words{"4096", "1024", "float", "max", "2", "12.50", "0.33", "0.49", "0", "13.25", "0.31", "0.46", "7", "ring"});
  CHECK(words(table_row(row_of(benchmark_of(Collective::all_reduce)), plain))[4] == "-1");
  CHECK(words(table_row(row_of(benchmark_of(Collective::all_to_all)), plain)) ==
        Words{"4096", "256", "float", "none", "-1", "12.50", "0.33", "0.49", "0", "N/A", "N/A", "N/A", "N/A", "ring"});
  Row unchecked = row_of(benchmark_of(Collective::broadcast));
  unchecked.out_of_place.checked = false;
  CHECK(words(table_row(unchecked, plain))[8] == "N/A");
}

TEST_CASE("predictions have columns only where something predicts") {
  Row row = row_of(benchmark_of(Collective::reduce));
  CHECK(table_head(plain).find("predicted") == std::string::npos);
  CHECK(table_head(predicting).find("predicted") != std::string::npos);
  const Words none = words(table_row(row, predicting));
  CHECK(Words(none.end() - 3, none.end()) == Words{"N/A", "N/A", "ring"});
  row.predicted_us = 10;
  const Words predicted = words(table_row(row, predicting));
  CHECK(Words(predicted.end() - 3, predicted.end()) == Words{"10.00", "-20%", "ring"});
}

TEST_CASE("percentiles and times of day have columns where they are asked for") {
  Row row = row_of(benchmark_of(Collective::reduce));
  row.out_of_place.percentiles = Percentiles{100, 1, 2, 3, 4, 123456};
  const Columns columns{.percentiles = true};
  CHECK(words(table_row(row, columns)) == Words{"4096", "1024",   "float", "max",  "2",    "12.50", "0.33", "0.49", "0",   "2.00", "3.00",
                                                "4.00", "123456", "13.25", "0.31", "0.46", "7",     "N/A",  "N/A",  "N/A", "N/A",  "ring"});
  CHECK(table_head(columns).find("i_p99") != std::string::npos);
  CHECK(table_head(plain).find("i_p99") == std::string::npos);
  const Words timed = words(table_row(row, {.timestamp = true}));
  CHECK(timed.at(13).size() == std::string("2026-11-22").size());
  CHECK(timed.at(14).size() == std::string("18:00:00").size());
}

TEST_CASE("columns stand under their heads") {
  for (const Columns columns : {plain, predicting, Columns{true, true, true}, Columns{false, true, false}, Columns{true, false, true}}) {
    std::istringstream head(table_head(columns));
    std::string line;
    std::getline(head, line);
    std::getline(head, line);
    Row measured = row_of(benchmark_of(Collective::reduce));
    measured.out_of_place.percentiles = Percentiles{100, 1, 2, 3, 4, 5.25};
    const std::string row = table_row(measured, columns);
    CHECK(line.find("algorithm") == row.find("ring"));
    CHECK(line.find("root") + 3 == row.find(" 2 ") + 1);
    CHECK(line.find("#wrong") + 5 == row.find("  0  ") + 2);
    if (columns.percentiles) CHECK(line.find("i_max") + 4 == row.find(" 5.25") + 4);
    if (columns.timestamp) CHECK(row.substr(line.find("timestamp"), 2) == "20");
  }
}

TEST_CASE("JSON lines begin with what holds for all, and end with what it came to") {
  SweepOptions options;
  options.benchmark = &benchmark_of(Collective::reduce);
  options.timing.calls = 3;
  Row row = row_of(benchmark_of(Collective::reduce));
  const auto lines = written(options, {row, row});
  const nlohmann::json& head = lines.front();
  CHECK((head["collective"] == "reduce" && head["ranks"] == 4 && head["algorithm"] == "auto" && head["transports"][1] == "shm"));
  CHECK(head["options"]["calls_per_iteration"] == 3);
  for (const char* key : {"gyre", "commit", "command", "date"}) CHECK_FALSE(head[key].empty());
  for (const char* key : {"host", "machine", "processor", "processors", "kernel", "isa"}) CHECK_FALSE(head["machine"][key].empty());
  for (const char* key : {"compiler", "libc", "ucx"}) CHECK(head["versions"].contains(key));
  CHECK(head["config"].dump() == R"({"GYRE_SLOTS":4,"GYRE_WAIT":"yield"})");
  const nlohmann::json& end = lines.back()["end"];
  CHECK((end["rows"] == 2 && end["wrong"] == 14 && end["ended_by"] == "time limit" && end["seconds"] == 1.5));
  CHECK(std::abs(end["average_busbw"].get<double>() - (0.49 + 0.46) / 2) < 1e-12);
  CHECK_FALSE((head.contains("groups") || end.contains("busbw_ok")));
  CHECK(written(options, {}, {{3, {0, 1}}, {7, {2}}}).front()["groups"].dump() == R"([{"color":3,"ranks":[0,1]},{"color":7,"ranks":[2]}])");
}

TEST_CASE("JSON has null for what does not exist, and a prediction only where there is one") {
  Row predicted = row_of(benchmark_of(Collective::reduce));
  predicted.predicted_us = 15;
  predicted.out_of_place.percentiles = Percentiles{100, 1, 2, 3, 4, 5};
  predicted.cut = true;
  SweepOptions options;
  const auto lines = written(options, {row_of(send_and_receive()), predicted});
  const nlohmann::json& moved = lines[1];
  CHECK((moved["in_place"].is_null() && moved["redop"].is_null() && moved["root"].is_null()));
  CHECK_FALSE((moved.contains("predicted_us") || moved.contains("cut") || moved["out_of_place"].contains("percentiles")));
  const nlohmann::json& reduced = lines[2];
  CHECK((reduced["redop"] == "max" && reduced["root"] == 2 && reduced["in_place"]["wrong"] == 7));
  CHECK((reduced["predicted_us"] == 15 && reduced["cut"] == "time limit"));
  CHECK(reduced["out_of_place"]["percentiles"]["p99_us"] == 4);
  CHECK(std::abs(reduced["prediction_error"].get<double>() - 0.2) < 1e-12);
}

TEST_CASE("a file that takes nothing is an error") {
  const auto json = JsonLines::open("/dev/full", {}, {});
  REQUIRE_FALSE(json);
  CHECK(json.error().what.starts_with("--json /dev/full: "));
}
