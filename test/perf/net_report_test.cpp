#include "perf/net_report.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <sstream>

#include "test/catch.h"

using namespace gyre;
using namespace gyre::perf;

namespace {

NetCommand command_of(int connections, bool bidirectional) {
  NetCommand command;
  command.setting.connections = connections;
  command.setting.bidirectional = bidirectional;
  command.command_line = "gyre-perf net plugin.so";
  return command;
}

NetRow full_row() {
  NetRow row;
  row.bytes = 65536;
  row.bandwidth = NetBandwidth{20000, 0.25, 0.125, 5};
  row.latency = NetLatency{500, 8.5, 12.25, 9.0, 0.0625, 5};
  row.wrong = 0;
  return row;
}

std::vector<std::string> net_words(const std::string& line) {
  std::istringstream stream(line);
  return {std::istream_iterator<std::string>(stream), {}};
}
using NetWords = std::vector<std::string>;

}  // namespace

TEST_CASE("a row of a net plugin's table has sizes, bandwidth, latency and wrong bytes") {
  CHECK(net_words(net_table_row(command_of(4, true), full_row())) ==
        NetWords{"65536", "4", "8", "2", "12.50", "5.243", "80.0", "12.5", "8.50", "12.25", "6.2", "0"});
}

TEST_CASE("what a net plugin's row does not have is N/A") {
  NetRow row;
  row.bytes = 8;
  CHECK(net_words(net_table_row(command_of(1, false), row)) ==
        NetWords{"8", "1", "8", "1", "N/A", "N/A", "N/A", "N/A", "N/A", "N/A", "N/A", "N/A"});
}

TEST_CASE("the columns of a net plugin's head stand over the row's") {
  const std::string head = net_table_head();
  const std::string first = head.substr(0, head.find('\n') + 1);
  CHECK(first.size() == net_table_row(command_of(1, false), full_row()).size());
  CHECK(net_words(first).size() == 15);  // "lat p50" and "lat p99" are two words each, and # is one
}

TEST_CASE("a net plugin's rows are written as a JSON object a line") {
  const std::string path = fmt::format("/tmp/gyre-net-report-test-{}.jsonl", getpid());
  NetRow only_latency = full_row();
  only_latency.bandwidth.reset();
  only_latency.wrong.reset();
  const Status status = write_net_json(path, command_of(2, false), {"gyre", 12, "lo", 10000}, {full_row(), only_latency});
  REQUIRE(status);
  std::ifstream file(path);
  std::vector<nlohmann::json> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(nlohmann::json::parse(line, nullptr, false));
  std::remove(path.c_str());
  REQUIRE(lines.size() == 3);
  CHECK(lines[0]["kind"] == "run");
  CHECK(lines[0]["plugin"]["table"] == 12);
  CHECK(lines[0]["command"] == "gyre-perf net plugin.so");
  CHECK(lines[1]["bytes"] == 65536);
  CHECK(lines[1]["connections"] == 2);
  CHECK(lines[1]["bandwidth"]["messages_per_s"] == 80000);
  CHECK(lines[1]["latency"]["p99_us"] == 12.25);
  CHECK(lines[1]["wrong"] == 0);
  CHECK(!lines[2].contains("bandwidth"));
  CHECK(lines[2]["wrong"].is_null());
}

TEST_CASE("a net plugin's rows that cannot be written are an error that names the file") {
  const Status status = write_net_json("/nowhere/rows.jsonl", command_of(1, false), {"gyre", 12, "lo", 10000}, {});
  REQUIRE(!status);
  CHECK(status.error().what.find("/nowhere/rows.jsonl") != std::string::npos);
}
