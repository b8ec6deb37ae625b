#include "perf/net_report.h"

#include <fmt/format.h>

#include <cerrno>
#include <fstream>

#include "base/text.h"
#include "perf/about_run.h"

namespace gyre::perf {
namespace {

constexpr std::string_view net_columns = "{:>12} {:>5} {:>5} {:>4}  {:>10} {:>8} {:>9} {:>6}  {:>9} {:>9} {:>6}  {:>6}\n";

template <class T, class Text>
std::string if_there(const std::optional<T>& value, Text&& text) {
  return value ? text(*value) : "N/A";
}
std::string percent(double share) { return fmt::format("{:.1f}", 100 * share); }

nlohmann::json to_json(const NetCommand& command, const NetRow& row) {
  nlohmann::json out{{"kind", "net"},
                     {"bytes", row.bytes},
                     {"connections", command.setting.connections},
                     {"depth", command.setting.depth},
                     {"bidirectional", command.setting.bidirectional},
                     {"shared_buffer", command.setting.shared_buffer},
                     {"spin", command.spin},
                     {"wrong", row.wrong ? nlohmann::json(*row.wrong) : nlohmann::json()}};
  if (const auto& b = row.bandwidth) {
    out["bandwidth"] = {{"gb_per_s", b->gigabytes_per_s(row.bytes)},
                        {"messages_per_s", b->messages_per_s()},
                        {"messages", b->messages},
                        {"seconds", b->seconds},
                        {"waited", b->waited},
                        {"batches", b->batches}};
  }
  if (const auto& l = row.latency) {
    out["latency"] = {{"p50_us", l->p50_us},           {"p99_us", l->p99_us}, {"mean_us", l->mean_us},
                      {"round_trips", l->round_trips}, {"waited", l->waited}, {"batches", l->batches}};
  }
  return out;
}

}  // namespace

std::string net_table_head() {
  const auto line = [](auto... words) { return "#" + fmt::format(net_columns, words...); };
  return line("size", "conns", "depth", "ways", "time", "bw", "rate", "waited", "lat p50", "lat p99", "waited", "#wrong") +
         line("(B)", "", "", "", "(us)", "(GB/s)", "(1000/s)", "(%)", "(us)", "(us)", "(%)", "(B)");
}

std::string net_table_row(const NetCommand& command, const NetRow& row) {
  const auto of_bandwidth = [&](auto&& text) { return if_there(row.bandwidth, text); };
  const auto of_latency = [&](auto&& text) { return if_there(row.latency, text); };
  return " " + fmt::format(net_columns, row.bytes, command.setting.connections, command.setting.depth,
                           command.setting.bidirectional ? 2 : 1,
                           of_bandwidth([](const NetBandwidth& b) { return fmt::format("{:.2f}", 1e6 / b.messages_per_s()); }),
                           of_bandwidth([&](const NetBandwidth& b) { return fmt::format("{:.3f}", b.gigabytes_per_s(row.bytes)); }),
                           of_bandwidth([](const NetBandwidth& b) { return fmt::format("{:.1f}", b.messages_per_s() / 1e3); }),
                           of_bandwidth([](const NetBandwidth& b) { return percent(b.waited); }),
                           of_latency([](const NetLatency& l) { return fmt::format("{:.2f}", l.p50_us); }),
                           of_latency([](const NetLatency& l) { return fmt::format("{:.2f}", l.p99_us); }),
                           of_latency([](const NetLatency& l) { return percent(l.waited); }),
                           if_there(row.wrong, [](uint64_t wrong) { return std::to_string(wrong); }));
}

Status write_net_json(const std::string& path, const NetCommand& command, const NetFacts& facts, const std::vector<NetRow>& rows) {
  nlohmann::json run = about_run(command.command_line, facts.config);
  run["kind"] = "run";
  run["plugin"] = {{"name", facts.name}, {"table", facts.table}, {"device", facts.device}, {"speed_mbit", facts.speed_mbit}};
  std::ofstream file(path);
  file << run.dump() << '\n';
  for (const NetRow& row : rows) file << to_json(command, row).dump() << '\n';
  file.close();
  if (!file) return Error{Code::system, fmt::format("--json {}: {}", path, errno_text(errno))};
  return {};
}

}  // namespace gyre::perf
