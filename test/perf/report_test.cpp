#include "perf/report.h"

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

nlohmann::json written(const std::vector<Row>& rows) {
  const std::string path = fmt::format("/tmp/gyre-report-test-{}.json", getpid());
  const Status status = write_json(path, {"gyre-perf reduce", "reduce", 4, {"shm"}}, rows);
  std::ifstream file(path);
  nlohmann::json json = nlohmann::json::parse(file, nullptr, false);
  std::remove(path.c_str());
  REQUIRE(status);
  return json;
}

}  // namespace

TEST_CASE("a row has nccl-tests' columns, and N/A where nccl-tests has no value") {
  CHECK(words(table_row(row_of(benchmark_of(Collective::reduce)), false)) ==
        Words{"4096", "1024", "float", "max", "2", "12.50", "0.33", "0.49", "0", "13.25", "0.31", "0.46", "7", "ring"});
  CHECK(words(table_row(row_of(benchmark_of(Collective::all_reduce)), false))[4] == "-1");
  CHECK(words(table_row(row_of(benchmark_of(Collective::all_to_all)), false)) ==
        Words{"4096", "256", "float", "none", "-1", "12.50", "0.33", "0.49", "0", "N/A", "N/A", "N/A", "N/A", "ring"});
  Row unchecked = row_of(benchmark_of(Collective::broadcast));
  unchecked.out_of_place.checked = false;
  CHECK(words(table_row(unchecked, false))[8] == "N/A");
}

TEST_CASE("predictions have columns only where something predicts") {
  Row row = row_of(benchmark_of(Collective::reduce));
  CHECK(table_head(false).find("predicted") == std::string::npos);
  CHECK(table_head(true).find("predicted") != std::string::npos);
  const Words none = words(table_row(row, true));
  CHECK(Words(none.end() - 3, none.end()) == Words{"N/A", "N/A", "ring"});
  row.predicted_us = 10;
  const Words predicted = words(table_row(row, true));
  CHECK(Words(predicted.end() - 3, predicted.end()) == Words{"10.00", "-20%", "ring"});
}

TEST_CASE("columns stand under their heads") {
  for (const bool predicts : {false, true}) {
    std::istringstream head(table_head(predicts));
    std::string line;
    std::getline(head, line);
    std::getline(head, line);
    const std::string row = table_row(row_of(benchmark_of(Collective::reduce)), predicts);
    CHECK(line.find("algorithm") == row.find("ring"));
    CHECK(line.find("root") + 3 == row.find(" 2 ") + 1);
    CHECK(line.find("#wrong") + 5 == row.find("  0  ") + 2);
  }
}

TEST_CASE("JSON has null for what does not exist, and a prediction only where there is one") {
  Row predicted = row_of(benchmark_of(Collective::reduce));
  predicted.predicted_us = 15;
  const nlohmann::json json = written({row_of(send_and_receive()), predicted});
  REQUIRE(json.is_object());
  CHECK(json["collective"] == "reduce");
  const nlohmann::json& moved = json["results"][0];
  CHECK((moved["in_place"].is_null() && moved["redop"].is_null() && moved["root"].is_null()));
  CHECK_FALSE(moved.contains("predicted_us"));
  const nlohmann::json& reduced = json["results"][1];
  CHECK((reduced["redop"] == "max" && reduced["root"] == 2 && reduced["in_place"]["wrong"] == 7));
  CHECK(reduced["predicted_us"] == 15);
  CHECK(std::abs(reduced["prediction_error"].get<double>() - 0.2) < 1e-12);
}
