#include "perf/results.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <sstream>
#include <tuple>

#include "base/file.h"
#include "base/text.h"
#include "perf/samples.h"

namespace gyre::perf {
namespace {

using nlohmann::json;

Error no_result(const std::string& path, int line, const std::string& why) {
  return {Code::invalid_argument,
          line == 0 ? fmt::format("{}: no results: {}", path, why) : fmt::format("{}:{}: no result: {}", path, line, why)};
}

// Puts measurements of the same call together.
class Collector {
 public:
  void add(Point point) {
    const auto [known, fresh] = index_.try_emplace({point.benchmark, point.ranks, point.joined_by(), point.type, point.redop, point.root,
                                                    point.bytes, point.in_place, point.algorithm, point.grid, point.processors},
                                                   points_.size());
    if (fresh) {
      points_.push_back(std::move(point));
    } else {
      auto& us = points_[known->second].us;
      us.insert(us.end(), point.us.begin(), point.us.end());
    }
  }
  std::vector<Point> take() { return std::move(points_); }

 private:
  using Key =
      std::tuple<const Benchmark*, int, std::string, std::string, std::string, int, size_t, bool, std::string, std::vector<int>, int>;
  std::map<Key, size_t> index_;
  std::vector<Point> points_;
};

std::string transport_text(const json& transports) {
  std::vector<std::string> kinds;
  for (const std::string name : transports) {
    if (!name.empty() && std::find(kinds.begin(), kinds.end(), name) == kinds.end()) kinds.push_back(name);
  }
  return kinds.empty() ? "none" : fmt::format("{}", fmt::join(kinds, " and "));
}

const Benchmark* benchmark_named(std::string_view name) {
  const auto found = std::ranges::find(benchmarks(), name, &Benchmark::name);
  return found == benchmarks().end() ? nullptr : &*found;
}

// What is wrong with how and where a run says that it was made; empty: nothing.
std::string wrong_origin(const json& head) {
  if (head.contains("machine") && !head.at("machine").is_object()) return "machine must be a JSON object";
  if (head.contains("command") && !head.at("command").is_string()) return "command must be text";
  return {};
}

// What is wrong with the head of a sweep; empty: nothing.
std::string read_head(const json& head, Results& results) {
  const std::string collective = head.at("collective");
  if (benchmark_named(collective) == nullptr) return fmt::format("'{}' is no collective of gyre-perf", collective);
  results.about = head;
  results.asked = head.value("algorithm", "auto");
  if (!head.at("ranks").is_number_integer() || head.at("ranks").get<int64_t>() < 1 || head.at("ranks").get<int64_t>() > 1 << 24) {
    return "ranks must be a number from 1";
  }
  return wrong_origin(head);
}

// Adds a row's ways; what is wrong with it; empty: nothing.
std::string read_row(const json& row, const Results& results, Collector& points) {
  Point point;
  point.benchmark = benchmark_named(results.about.at("collective").get_ref<const std::string&>());
  point.ranks = results.about.at("ranks");
  point.transport = transport_text(results.about.at("transports"));
  point.type = row.at("type");
  if (!row.at("redop").is_null()) point.redop = row.at("redop");
  if (!row.at("root").is_null()) point.root = row.at("root");
  if (!row.at("bytes").is_number_unsigned()) return "bytes must be a whole number from 0";
  point.bytes = row.at("bytes");
  point.algorithm = row.at("algorithm");
  if (row.contains("predicted_us")) point.predicted_us = row.at("predicted_us").get<double>();
  for (const bool in_place : {false, true}) {
    const json& way = row.at(in_place ? "in_place" : "out_of_place");
    if (way.is_null()) continue;
    const double us = way.at("time_us");
    if (!(us > 0 && us < 1e15)) return fmt::format("time_us must be positive, it is {}", us);
    point.in_place = in_place;
    point.us = {us};
    points.add(point);
  }
  return {};
}

Result<Results> read_sweep(const std::string& path, const std::vector<json>& rows, const std::vector<int>& lines) {
  Results results;
  results.path = path;
  Collector points;
  for (size_t i = 0; i < rows.size(); ++i) {
    try {
      if (i > 0 && rows[i].contains("end")) continue;
      if (i > 0 && rows[i].contains("machine")) return no_result(path, lines[i], "a second run begins; a file holds one");
      const std::string wrong = i == 0 ? read_head(rows[i], results) : read_row(rows[i], results, points);
      if (!wrong.empty()) return no_result(path, lines[i], wrong);
    } catch (const json::exception& error) {
      return no_result(path, lines[i], error.what());
    }
  }
  results.points = points.take();
  if (results.points.empty()) return no_result(path, 0, "the sweep has no rows");
  return results;
}

// What versions wrote that did not write lines.
Result<Results> read_document(const std::string& path, const json& document) {
  std::vector<json> rows{document};
  rows.front().erase("results");
  for (const json& row : document.at("results")) rows.push_back(row);
  return read_sweep(path, rows, std::vector<int>(rows.size(), 0));
}

Result<Results> read_samples_of(const std::string& path, const json& head) {
  if (const std::string wrong = wrong_origin(head); !wrong.empty()) return no_result(path, 1, wrong);
  const auto samples = GYRE_TRY(read_samples({path}));
  Results results;
  results.path = path;
  results.about = head.contains("machine") ? head : json::object();
  results.samples = true;
  Collector points;
  for (const Sample& s : samples) {
    const Benchmark& benchmark = benchmark_of(s.collective);
    points.add({&benchmark,
                s.ranks,
                s.transport,
                "float",
                benchmark.reduces() ? "sum" : "",
                benchmark.rooted() ? 0 : -1,
                s.bytes,
                false,
                s.family,
                s.grid,
                s.processors,
                s.us,
                {},
                s.nodes,
                s.network});
  }
  results.points = points.take();
  return results;
}

}  // namespace

double Point::median_us() const {
  std::vector<double> sorted = us;
  std::sort(sorted.begin(), sorted.end());
  const size_t half = sorted.size() / 2;
  return sorted.size() % 2 != 0 ? sorted[half] : (sorted[half - 1] + sorted[half]) / 2;
}
double Point::least_us() const { return *std::min_element(us.begin(), us.end()); }
double Point::most_us() const { return *std::max_element(us.begin(), us.end()); }
std::string Point::algorithm_text() const { return grid.empty() ? algorithm : fmt::format("{} {}", algorithm, fmt::join(grid, "x")); }

std::string Point::joined_by() const {
  return nodes == 1 ? transport : fmt::format("{}, between {} nodes over {}", transport, nodes, network);
}

std::string Results::origin() const {
  const auto word = [](const json& from, const char* key) {
    const auto found = from.find(key);
    return found == from.end() ? std::string() : found->is_string() ? found->get<std::string>() : found->dump();
  };
  std::vector<std::string> words;
  const std::string of_commit = word(about, "commit");
  if (about.contains("gyre"))
    words.push_back(fmt::format("gyre {}{}", word(about, "gyre"), of_commit.empty() ? "" : " (" + of_commit + ")"));
  if (const auto machine = about.find("machine"); machine != about.end()) {
    words.push_back(word(*machine, "processor"));
    words.push_back(word(*machine, "processors") + " processors");
    words.push_back("kernel " + word(*machine, "kernel"));
  }
  if (about.contains("date")) words.push_back(word(about, "date"));
  return fmt::format("{}", fmt::join(words, ", "));
}

Result<Results> read_results(const std::string& path) {
  constexpr size_t most_bytes = 64 << 20;
  const auto text = read_file(path, most_bytes);
  if (!text) return Error{Code::invalid_argument, fmt::format("{}: {}", path, text.error().what)};
  if (const json document = json::parse(*text, nullptr, false); document.is_object() && document.contains("results")) {
    return read_document(path, document);
  }
  std::vector<json> rows;
  std::vector<int> lines;
  std::istringstream stream(*text);
  int number = 0;
  for (std::string line; std::getline(stream, line);) {
    ++number;
    if (line.empty()) continue;
    rows.push_back(json::parse(line, nullptr, false));
    lines.push_back(number);
    if (!rows.back().is_object()) return no_result(path, number, "the line is no JSON object");
  }
  if (rows.empty()) return no_result(path, 0, "the file is empty");
  if (rows.front().contains("collective") && !rows.front().contains("us")) return read_sweep(path, rows, lines);
  return read_samples_of(path, rows.front());
}

}  // namespace gyre::perf
