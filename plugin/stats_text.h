// What the net plugin has counted, as data, and the two texts that are made of it: JSON for people and their scripts, and what Prometheus
// reads. There each sample names host and process, so that the files of several ranks can be read together, and each connection has its
// number, so that two to the same peer stay apart. Texts come from outside (names of hosts and interfaces): nothing in them breaks a
// format. Pure: it must not know files, clocks or connections.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace gyre::plugin {

struct Figures {
  uint64_t bytes = 0, messages = 0, retries = 0, waited_ns = 0, errors = 0;
  Figures& operator+=(const Figures&);
};

struct DeviceStats {
  std::string name{}, interface {
  }, pci_path{};
  int port = 1;
  int mbit_per_s = 0;
  std::vector<int> members{};
};

struct ConnectionStats {
  uint64_t number = 0;
  std::string_view direction{};  ///< "send", "receive"
  std::string device{}, way{}, peer{}, address{};
  std::string_view state = "open";  ///< "lost": with an error; "closed", which need not be without one
  Figures figures{};
};

/// Connections to one peer that were closed so long ago that they are no longer told one by one.
struct EarlierStats {
  std::string_view direction{};
  std::string peer{};
  uint64_t connections = 0;
  Figures figures{};
};

struct StatsReport {
  std::string host{};
  uint32_t pid = 0;
  std::string time{};  ///< ISO 8601
  std::vector<DeviceStats> devices{};
  std::vector<ConnectionStats> connections{};
  std::vector<EarlierStats> earlier{};
  uint64_t strangers = 0;  ///< dropped

  Figures totals() const;
};

std::string json_text(const StatsReport&);
/// Text format 0.0.4.
std::string prometheus_text(const StatsReport&);

}  // namespace gyre::plugin
