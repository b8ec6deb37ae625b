#include "plugin/stats_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "base/version.h"

namespace gyre::plugin {
namespace {

using Json = nlohmann::ordered_json;

Json to_json(const Figures& f) {
  return {{"bytes", f.bytes}, {"messages", f.messages}, {"retries", f.retries}, {"waited_us", f.waited_ns / 1000}, {"errors", f.errors}};
}

Json to_json(const DeviceStats& d) {
  return {{"name", d.name}, {"interface", d.interface},   {"pci_path", d.pci_path},
          {"port", d.port}, {"mbit_per_s", d.mbit_per_s}, {"members", d.members}};
}

Json to_json(const ConnectionStats& c) {
  Json json{{"number", c.number}, {"direction", c.direction}, {"device", c.device}, {"way", c.way},
            {"peer", c.peer},     {"address", c.address},     {"state", c.state}};
  json.update(to_json(c.figures));
  return json;
}

Json to_json(const EarlierStats& e) {
  Json json{{"direction", e.direction}, {"peer", e.peer}, {"connections", e.connections}};
  json.update(to_json(e.figures));
  return json;
}

template <class Row>
Json list(const std::vector<Row>& rows) {
  Json all = Json::array();
  for (const Row& row : rows) all.push_back(to_json(row));
  return all;
}

// The format is UTF-8, so a byte that may be none is not passed on.
std::string label(std::string_view name, std::string_view value) {
  std::string text(name);
  text += "=\"";
  for (const char c : value) {
    if (c == '\\' || c == '"') text += '\\';
    if (c == '\n')
      text += "\\n";
    else
      text += c >= ' ' && c <= '~' ? c : '?';
  }
  return text += '"';
}

struct CounterKind {
  std::string_view name, help;
  uint64_t Figures::*figure;
};
constexpr std::array<CounterKind, 5> counter_kinds{{
    {"bytes", "Bytes of messages that are done", &Figures::bytes},
    {"messages", "Messages that are done", &Figures::messages},
    {"retries", "Calls that found no room and were told to come again", &Figures::retries},
    {"waited_seconds", "Time from post to done, summed over requests", &Figures::waited_ns},
    {"errors", "Errors, of which the first ends a connection", &Figures::errors},
}};

std::string value_of(const CounterKind& kind, const Figures& figures) {
  const uint64_t value = figures.*kind.figure;
  constexpr uint64_t second = 1'000'000'000;
  if (kind.figure == &Figures::waited_ns) return fmt::format("{}.{:09}", value / second, value % second);
  return fmt::format("{}", value);
}

class Exposition {
 public:
  explicit Exposition(const StatsReport& report)
      : whose_(fmt::format("{},{}", label("host", report.host), label("pid", fmt::format("{}", report.pid)))) {}

  /// All samples of a metric follow its begin, as the format wants it.
  void begin(std::string name, std::string_view type, std::string_view help) {
    name_ = "gyre_net_" + std::move(name);
    text_ += fmt::format("# HELP {} {}\n# TYPE {} {}\n", name_, help, name_, type);
  }
  void sample(std::string_view labels, std::string_view value) {
    text_ += fmt::format("{}{{{}{}{}}} {}\n", name_, whose_, labels.empty() ? "" : ",", labels, value);
  }
  void sample(std::string_view labels, uint64_t value) { sample(labels, fmt::format("{}", value)); }
  std::string take() { return std::move(text_); }

 private:
  const std::string whose_;
  std::string name_, text_;
};

std::string labels_of(const ConnectionStats& c) {
  return fmt::format("{},{},{},{},{},{}", label("connection", fmt::format("{}", c.number)), label("direction", c.direction),
                     label("device", c.device), label("way", c.way), label("peer", c.peer), label("address", c.address));
}

std::string labels_of(const EarlierStats& e) { return fmt::format("{},{}", label("direction", e.direction), label("peer", e.peer)); }

template <class Row>
void add_counters(Exposition& out, std::string_view prefix, std::string_view of_which, const std::vector<Row>& rows) {
  if (rows.empty()) return;
  std::vector<std::string> labels;
  labels.reserve(rows.size());
  for (const Row& row : rows) labels.push_back(labels_of(row));
  for (const CounterKind& kind : counter_kinds) {
    out.begin(fmt::format("{}{}_total", prefix, kind.name), "counter", fmt::format("{}{}.", kind.help, of_which));
    for (size_t i = 0; i < rows.size(); ++i) out.sample(labels[i], value_of(kind, rows[i].figures));
  }
}

}  // namespace

Figures& Figures::operator+=(const Figures& other) {
  for (const CounterKind& kind : counter_kinds) this->*kind.figure += other.*kind.figure;
  return *this;
}

Figures StatsReport::totals() const {
  Figures sum;
  for (const auto& connection : connections) sum += connection.figures;
  for (const auto& peer : earlier) sum += peer.figures;
  return sum;
}

std::string json_text(const StatsReport& report) {
  const Json json{{"version", version},
                  {"host", report.host},
                  {"pid", report.pid},
                  {"time", report.time},
                  {"devices", list(report.devices)},
                  {"totals", to_json(report.totals())},
                  {"strangers", report.strangers},
                  {"connections", list(report.connections)},
                  {"earlier", list(report.earlier)}};
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + '\n';
}

std::string prometheus_text(const StatsReport& report) {
  Exposition out(report);
  out.begin("info", "gauge", "The program that counts.");
  out.sample(label("version", version), 1);
  out.begin("device_bits_per_second", "gauge", "Speed of a device; 0: unknown.");
  for (const DeviceStats& device : report.devices)
    out.sample(label("device", device.name), static_cast<uint64_t>(std::max(device.mbit_per_s, 0)) * 1'000'000);
  add_counters(out, "", "", report.connections);
  add_counters(out, "earlier_", "; of connections closed so long ago that they are summed up by peer", report.earlier);
  out.begin("open_connections", "gauge", "Connections that are not closed.");
  for (const std::string_view direction : {"send", "receive"}) {
    const auto open = std::count_if(report.connections.begin(), report.connections.end(),
                                    [&](const auto& c) { return c.direction == direction && c.state != "closed"; });
    out.sample(label("direction", direction), static_cast<uint64_t>(open));
  }
  out.begin("strangers_total", "counter", "Who came to a listening port and was no peer.");
  out.sample("", report.strangers);
  return out.take();
}

}  // namespace gyre::plugin
