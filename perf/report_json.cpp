#include <fmt/chrono.h>
#include <fmt/format.h>
#include <sys/utsname.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <thread>

#include "base/version.h"
#include "kernels/reduce_host.h"
#include "perf/report.h"
#include "perf/report_json.h"

namespace gyre::perf {
namespace {

nlohmann::json to_json(const Measured& m) {
  nlohmann::json json{{"time_us", m.time_us}, {"algbw", m.algbw}, {"busbw", m.busbw}};
  json["wrong"] = m.checked ? nlohmann::json(m.wrong) : nlohmann::json();
  return json;
}

std::string processor() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);) {
    if (line.starts_with("model name")) return line.substr(line.find(':') + 2);
  }
  return "unknown";
}

nlohmann::json to_json(const Row& row) {
  const Case& c = row.call;
  nlohmann::json json{{"bytes", c.bytes()}, {"count", c.count}, {"type", name(c.type)}, {"algorithm", row.algorithm}};
  json["redop"] = c.benchmark->reduces() ? nlohmann::json(name(c.op)) : nlohmann::json();
  json["root"] = c.benchmark->rooted() ? nlohmann::json(c.root) : nlohmann::json();
  json["out_of_place"] = to_json(row.out_of_place);
  json["in_place"] = row.in_place ? to_json(*row.in_place) : nlohmann::json();
  if (row.predicted_us) json["predicted_us"] = *row.predicted_us;
  if (const auto error = row.prediction_error()) json["prediction_error"] = *error;
  return json;
}

}  // namespace

nlohmann::json about_run(const std::string& command) {
  utsname system{};
  uname(&system);
  return {{"gyre", version},
          {"command", command},
          {"date", fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr)))},
          {"machine",
           {{"processor", processor()},
            {"processors", std::thread::hardware_concurrency()},
            {"kernel", system.release},
            {"isa", kernels::isa()}}}};
}

Status write_json(const std::string& path, const RunFacts& facts, const std::vector<Row>& rows) {
  nlohmann::json results = nlohmann::json::array();
  for (const Row& row : rows) results.push_back(to_json(row));
  nlohmann::json all = about_run(facts.command);
  all["collective"] = facts.benchmark;
  all["ranks"] = facts.ranks;
  all["transports"] = facts.transports;
  all["results"] = std::move(results);
  std::ofstream file(path);
  file << all.dump(1) << '\n';
  file.close();
  if (!file) return Error{Code::system, fmt::format("--json {}: {}", path, std::strerror(errno))};
  return {};
}

}  // namespace gyre::perf
