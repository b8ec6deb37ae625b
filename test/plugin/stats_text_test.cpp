#include "plugin/stats_text.h"

#include <map>
#include <nlohmann/json.hpp>

#include "test/catch.h"
#include "test/plugin/exposition.h"

using namespace gyre::plugin;
using gyre::test::parse_prometheus;
using gyre::test::Parsed;
using gyre::test::Sample;
using gyre::test::value_of_sample;

namespace {

StatsReport sample_report() {
  StatsReport report;
  report.host = "alpha";
  report.pid = 4711;
  report.time = "2026-11-22T10:00:00Z";
  report.devices.push_back({"mlx5_0:1", "ib0", "/sys/devices/pci0000:00/0000:00:05.0", 1, 100'000, {0}});
  report.connections.push_back(
      {7, "send", "mlx5_0:1", "shared memory", "beta, process 2, mlx5_0:1", "10.0.0.2:4000", "open", {100, 3, 1, 1'500'000'000, 0}});
  report.connections.push_back(
      {8, "receive", "mlx5_0:1", "rc", "beta, process 2, mlx5_0:1", "10.0.0.2:4001", "lost", {20, 1, 0, 2'999, 1}});
  report.earlier.push_back({"send", "gamma", 12, {1000, 50, 4, 7, 2}});
  report.strangers = 5;
  return report;
}

}  // namespace

TEST_CASE("totals are of all connections, those summed up included") {
  const Figures totals = sample_report().totals();
  CHECK(totals.bytes == 1120);
  CHECK(totals.messages == 54);
  CHECK(totals.retries == 5);
  CHECK(totals.waited_ns == 1'500'003'006);
  CHECK(totals.errors == 3);
}

TEST_CASE("the JSON parses back to what was counted") {
  const auto json = nlohmann::json::parse(json_text(sample_report()));
  CHECK(json["host"] == "alpha");
  CHECK(json["pid"] == 4711);
  CHECK(json["time"] == "2026-11-22T10:00:00Z");
  CHECK(json["strangers"] == 5);
  CHECK(json["totals"]["bytes"] == 1120);
  CHECK(json["devices"][0]["name"] == "mlx5_0:1");
  CHECK(json["devices"][0]["mbit_per_s"] == 100'000);
  REQUIRE(json["connections"].size() == 2);
  const auto& first = json["connections"][0];
  CHECK(first["number"] == 7);
  CHECK(first["direction"] == "send");
  CHECK(first["device"] == "mlx5_0:1");
  CHECK(first["way"] == "shared memory");
  CHECK(first["peer"] == "beta, process 2, mlx5_0:1");
  CHECK(first["address"] == "10.0.0.2:4000");
  CHECK(first["bytes"] == 100);
  CHECK(first["messages"] == 3);
  CHECK(first["retries"] == 1);
  CHECK(first["waited_us"] == 1'500'000);
  CHECK(first["state"] == "open");
  CHECK(json["connections"][1]["errors"] == 1);
  CHECK(json["connections"][1]["waited_us"] == 2);
  CHECK(json["connections"][1]["state"] == "lost");
  CHECK(json["earlier"][0]["connections"] == 12);
  CHECK(json["earlier"][0]["peer"] == "gamma");
  CHECK(json["earlier"][0]["bytes"] == 1000);
}

TEST_CASE("a report of nothing has both formats") {
  const auto json = nlohmann::json::parse(json_text({}));
  CHECK(json["connections"].is_array());
  CHECK(json["totals"]["bytes"] == 0);
  CHECK(value_of_sample(parse_prometheus(prometheus_text({})), "gyre_net_open_connections", {{"direction", "send"}}) == "0");
}

TEST_CASE("the Prometheus text parses back to what was counted") {
  const Parsed parsed = parse_prometheus(prometheus_text(sample_report()));
  const std::map<std::string, std::string> first{{"connection", "7"},          {"direction", "send"},
                                                 {"device", "mlx5_0:1"},       {"way", "shared memory"},
                                                 {"address", "10.0.0.2:4000"}, {"peer", "beta, process 2, mlx5_0:1"}};
  CHECK(value_of_sample(parsed, "gyre_net_bytes_total", first) == "100");
  CHECK(value_of_sample(parsed, "gyre_net_messages_total", first) == "3");
  CHECK(value_of_sample(parsed, "gyre_net_retries_total", first) == "1");
  CHECK(value_of_sample(parsed, "gyre_net_waited_seconds_total", first) == "1.500000000");
  CHECK(value_of_sample(parsed, "gyre_net_waited_seconds_total", {{"connection", "8"}}) == "0.000002999");
  CHECK(value_of_sample(parsed, "gyre_net_errors_total", {{"connection", "8"}, {"direction", "receive"}}) == "1");
  CHECK(value_of_sample(parsed, "gyre_net_earlier_bytes_total", {{"direction", "send"}, {"peer", "gamma"}}) == "1000");
  CHECK(value_of_sample(parsed, "gyre_net_strangers_total", {}) == "5");
  CHECK(value_of_sample(parsed, "gyre_net_open_connections", {{"direction", "send"}}) == "1");
  CHECK(value_of_sample(parsed, "gyre_net_device_bits_per_second", {{"device", "mlx5_0:1"}}) == "100000000000");
  for (const Sample& sample : parsed.samples) {
    INFO(sample.name);
    CHECK(sample.labels.at("host") == "alpha");
    CHECK(sample.labels.at("pid") == "4711");
    CHECK(parsed.types.at(sample.name) == (sample.name.ends_with("_total") ? "counter" : "gauge"));
  }
}

TEST_CASE("two connections to one peer by one way stay apart") {
  StatsReport report = sample_report();
  report.connections.push_back(report.connections.front());
  report.connections.back().number = 9;
  report.connections.back().figures.bytes = 101;
  const Parsed parsed = parse_prometheus(prometheus_text(report));
  CHECK(value_of_sample(parsed, "gyre_net_bytes_total", {{"connection", "7"}}) == "100");
  CHECK(value_of_sample(parsed, "gyre_net_bytes_total", {{"connection", "9"}}) == "101");
}

TEST_CASE("no name from outside breaks a format") {
  StatsReport report = sample_report();
  const std::string name = "a\"b\\c\nd},x=\"1\"} 2\n# TYPE";
  report.connections.front().peer = name;
  const Parsed parsed = parse_prometheus(prometheus_text(report));
  CHECK(value_of_sample(parsed, "gyre_net_bytes_total", {{"connection", "7"}, {"peer", name}}) == "100");
  CHECK(nlohmann::json::parse(json_text(report))["connections"][0]["peer"] == name);

  report.connections.front().peer = "\xff\xfe\x01";
  CHECK(value_of_sample(parse_prometheus(prometheus_text(report)), "gyre_net_bytes_total", {{"peer", "???"}}) == "100");
  CHECK(nlohmann::json::parse(json_text(report))["connections"].size() == 2);
}
