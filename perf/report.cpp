#include "perf/report.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/version.h"
#include "kernels/reduce_host.h"

namespace gyre::perf {
namespace {

std::string columns(const Measured& m) {
  const std::string wrong = m.checked ? fmt::format("{}", m.wrong) : "N/A";
  return fmt::format("{:>9} {:>7.2f} {:>7.2f} {:>6}", m.time_us < 1e5 ? fmt::format("{:.2f}", m.time_us) : fmt::format("{:.0f}", m.time_us),
                     m.algbw, m.busbw, wrong);
}

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

}  // namespace

void Report::head(const std::vector<std::string>& about) {
  for (const std::string& line : about) fmt::print("# {}\n", line);
  fmt::print("#\n# {:>12} {:>12} {:>9} {:>6} {:>5}  {:^32} {:^32}  {}\n", "", "", "", "", "", "out-of-place", "in-place", "");
  constexpr std::string_view format = "# {:>12} {:>12} {:>9} {:>6} {:>5}  {:>9} {:>7} {:>7} {:>6} {:>9} {:>7} {:>7} {:>6}  {}\n";
  fmt::print(format, "size", "count", "type", "redop", "root", "time", "algbw", "busbw", "#wrong", "time", "algbw", "busbw", "#wrong",
             "algorithm");
  fmt::print(format, "(B)", "(elements)", "", "", "", "(us)", "(GB/s)", "(GB/s)", "", "(us)", "(GB/s)", "(GB/s)", "", "");
  std::fflush(stdout);
}

void Report::progress(size_t bytes, size_t done, size_t of) {
  const auto now = std::chrono::steady_clock::now();
  if (isatty(STDERR_FILENO) == 0 || now - last_ < std::chrono::seconds(1)) return;
  fmt::print(stderr, "\r\033[K# {} of {}: {} bytes …", done, of, bytes);
  std::fflush(stderr);
  progress_shown_ = true;
}

void Report::clear_progress() {
  if (progress_shown_) fmt::print(stderr, "\r\033[K");
  progress_shown_ = false;
  last_ = std::chrono::steady_clock::now();
}

void Report::row(const Row& row) {
  clear_progress();
  rows_.push_back(row);
  fmt::print("  {:>12} {:>12} {:>9} {:>6} {:>5}  {} {}  {}\n", row.bytes, row.count, name(row.type), name(row.op), -1,
             columns(row.out_of_place), columns(row.in_place), row.algorithm);
  std::fflush(stdout);
}

uint64_t Report::tail() {
  clear_progress();
  uint64_t wrong = 0;
  double busbw = 0;
  bool checked = false;
  for (const Row& row : rows_) {
    wrong += row.out_of_place.wrong + row.in_place.wrong;
    busbw += row.out_of_place.busbw + row.in_place.busbw;
    checked = checked || row.in_place.checked;
  }
  if (checked) fmt::print("# Out of bounds values : {} {}\n", wrong, wrong == 0 ? "OK" : "FAILED");
  fmt::print("# Avg bus bandwidth    : {:.4f}\n", rows_.empty() ? 0 : busbw / (2 * static_cast<double>(rows_.size())));
  std::fflush(stdout);
  return wrong;
}

Status write_json(const std::string& path, const std::string& command, int ranks, const std::vector<std::string>& transports,
                  const std::vector<Row>& rows) {
  utsname system{};
  uname(&system);
  nlohmann::json results = nlohmann::json::array();
  for (const Row& row : rows) {
    results.push_back({{"bytes", row.bytes},
                       {"count", row.count},
                       {"type", name(row.type)},
                       {"redop", name(row.op)},
                       {"algorithm", row.algorithm},
                       {"out_of_place", to_json(row.out_of_place)},
                       {"in_place", to_json(row.in_place)}});
  }
  const nlohmann::json all{{"gyre", version},
                           {"command", command},
                           {"date", fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr)))},
                           {"machine",
                            {{"processor", processor()},
                             {"processors", std::thread::hardware_concurrency()},
                             {"kernel", system.release},
                             {"isa", kernels::isa()}}},
                           {"collective", "all_reduce"},
                           {"ranks", ranks},
                           {"transports", transports},
                           {"results", results}};
  std::ofstream file(path);
  file << all.dump(1) << '\n';
  file.close();
  if (!file) return Error{Code::system, fmt::format("--json {}: {}", path, std::strerror(errno))};
  return {};
}

}  // namespace gyre::perf
