#include "perf/samples.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <initializer_list>
#include <sstream>

#include "base/file.h"
#include "perf/about_run.h"
#include "perf/benchmark.h"

namespace gyre::perf {

double Sample::median_us() const {
  std::vector<double> sorted = us;
  std::sort(sorted.begin(), sorted.end());
  if (sorted.empty()) return 0;
  const size_t half = sorted.size() / 2;
  return sorted.size() % 2 != 0 ? sorted[half] : (sorted[half - 1] + sorted[half]) / 2;
}

size_t Sample::block_bytes() const { return bytes / benchmark_of(collective).blocks(ranks); }

std::vector<size_t> in_round(const std::vector<Sample>& of_one_size, int round) {
  constexpr int rounds_of_all = 5;
  const auto median = [](const Sample& s) { return s.median_us(); };
  const double best_us = median(*std::ranges::min_element(of_one_size, {}, median));
  std::vector<size_t> out;
  for (size_t i = 0; i < of_one_size.size(); ++i) {
    if (round < rounds_of_all || std::ranges::min(of_one_size[i].us) <= best_us) out.push_back(i);
  }
  return out;
}

namespace {

// Files from before there were others have no collective.
std::optional<Collective> collective_of(const nlohmann::json& line) {
  const auto named = line.find("collective");
  return named == line.end() ? Collective::all_reduce : collective_named(named->get<std::string>());
}

bool is_whole(const nlohmann::json& value, int64_t least, int64_t most) {
  return value.is_number_integer() && value.get<int64_t>() >= least && value.get<int64_t>() <= most;
}

bool is_one_of(const nlohmann::json& value, std::initializer_list<const char*> words) {
  return std::any_of(words.begin(), words.end(), [&](const char* word) { return value == word; });
}

// What is wrong with what a line says of nodes, of which there is one where it says nothing.
std::string wrong_nodes(const nlohmann::json& line) {
  if (!line.contains("nodes")) return line.contains("network") ? "network is between nodes, and nodes is missing" : "";
  const int64_t ranks = line.at("ranks").get<int64_t>();
  const auto& nodes = line.at("nodes");
  if (!is_whole(nodes, 2, ranks) || ranks % nodes.get<int64_t>() != 0) return "nodes must be from 2 to ranks, with equally many on each";
  return is_one_of(line.at("network"), {"tcp", "verbs", "ucx"}) ? "" : "network must be tcp, verbs or ucx";
}

// What is wrong with a line's values; json converts what it is given without a word.
std::string senseless(const nlohmann::json& line) {
  const auto whole = [&](const char* key, int64_t least, int64_t most) { return is_whole(line.at(key), least, most); };
  if (!whole("ranks", 1, 512)) return "ranks must be from 1 to 512";
  if (std::string wrong = wrong_nodes(line); !wrong.empty()) return wrong;
  if (!whole("processors", 1, 1 << 20)) return "processors must be from 1 to 1048576";
  if (!whole("bytes", 0, int64_t{1} << 43)) return "bytes must be from 0 to 8 TiB";
  if (!is_one_of(line.at("transport"), {"shm", "tcp", "verbs", "ucx"})) return "transport must be shm, tcp, verbs or ucx";
  if (!collective_of(line)) return fmt::format("{} is no collective", line.at("collective").dump());
  for (const auto& us : line.at("us")) {
    if (!us.is_number() || !(us.get<double>() >= 1e-3 && us.get<double>() <= 1e12)) return "us must be from 0.001 to 1e12";
  }
  if (line.at("us").empty()) return "us is empty";
  const size_t blocks = benchmark_of(*collective_of(line)).blocks(line.at("ranks").get<int>());
  if (blocks > 1 && line.at("bytes").get<size_t>() % (blocks * sizeof(float)) != 0) return "bytes must be whole elements for every rank";
  return "";
}

}  // namespace

Status append_samples(const std::string& path, const std::string& command, const Config& config, const std::vector<Sample>& samples) {
  std::ofstream file(path, std::ios::app);
  file << about_run(command, config).dump() << '\n';
  for (const Sample& s : samples) {
    nlohmann::json line{{"collective", name(s.collective)},
                        {"ranks", s.ranks},
                        {"transport", s.transport},
                        {"processors", s.processors},
                        {"algorithm", s.family},
                        {"grid", s.grid},
                        {"bytes", s.bytes},
                        {"us", s.us}};
    if (s.nodes > 1) line["nodes"] = s.nodes, line["network"] = s.network;
    file << line.dump() << '\n';
  }
  file.close();
  if (!file) return Error{Code::system, fmt::format("{}: {}", path, std::strerror(errno))};
  return {};
}

Result<std::vector<Sample>> read_samples(const std::vector<std::string>& paths) {
  std::vector<Sample> all;
  for (const std::string& path : paths) {
    constexpr size_t most_bytes = 256 << 20;
    const auto text = read_file(path, most_bytes);
    if (!text) return Error{Code::invalid_argument, fmt::format("{}: {}", path, text.error().what)};
    std::istringstream lines(*text);
    int number = 0;
    for (std::string line; std::getline(lines, line);) {
      ++number;
      try {
        const auto sample = nlohmann::json::parse(line);
        if (sample.contains("machine")) continue;
        if (const std::string wrong = senseless(sample); !wrong.empty()) {
          return Error{Code::invalid_argument, fmt::format("{}:{}: not a sample: {}", path, number, wrong)};
        }
        Sample s{sample.at("ranks"),       sample.at("transport"),     sample.at("processors"), sample.at("algorithm"),
                 sample.at("grid"),        sample.at("bytes"),         sample.at("us"),         *collective_of(sample),
                 sample.value("nodes", 1), sample.value("network", "")};
        all.push_back(std::move(s));
      } catch (const nlohmann::json::exception& error) {
        return Error{Code::invalid_argument, fmt::format("{}:{}: not a sample: {}", path, number, error.what())};
      }
    }
  }
  if (all.empty()) return Error{Code::invalid_argument, fmt::format("{}: no samples", fmt::join(paths, ", "))};
  return all;
}

}  // namespace gyre::perf
