#include "engine/facts.h"

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <bit>
#include <climits>
#include <filesystem>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/sysfs.h"
#include "base/text.h"
#include "base/version.h"
#include "transport/launch.h"

namespace gyre::transport {
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Device::Port, name, port, mbit_per_s)
}

namespace gyre::engine {

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Facts, version, host, processors, numa, backends, ports, transport, slot_bytes, slots, channels,
                                   memory_bytes, algorithm, grid, numerics, constants, slots_by_default, gpu)

namespace {

std::vector<uint64_t> own_processors() {
  cpu_set_t set;
  CPU_ZERO(&set);
  sched_getaffinity(0, sizeof set, &set);
  std::vector<uint64_t> words(CPU_SETSIZE / 64);
  for (size_t i = 0; i < CPU_SETSIZE; ++i) {
    if (CPU_ISSET(i, &set)) words[i / 64] |= uint64_t{1} << (i % 64);
  }
  while (!words.empty() && words.back() == 0) words.pop_back();
  return words;
}

// The node that has all of these processors; -1: none has.
int numa_of(const std::vector<uint64_t>& processors, const std::filesystem::path& nodes) {
  for (const std::filesystem::path& node : sysfs::entries(nodes)) {
    const auto number = parse_number(node.filename().string().starts_with("node") ? node.filename().string().substr(4) : "");
    bool all = number.has_value();
    for (size_t i = 0; all && i < processors.size() * 64; ++i)
      all = (processors[i / 64] >> (i % 64) & 1) == 0 || std::filesystem::exists(node / fmt::format("cpu{}", i));
    if (all) return static_cast<int>(std::min<uint64_t>(*number, INT_MAX));
  }
  return -1;
}

Status must_agree(const std::vector<Facts>& all, std::string_view what, auto fact) {
  for (size_t rank = 1; rank < all.size(); ++rank) {
    if (fact(all[rank]) == fact(all[0])) continue;
    return Error{Code::invalid_usage,
                 fmt::format("ranks differ: rank {} has {}={}, rank 0 has {}", rank, what, fact(all[rank]), fact(all[0]))};
  }
  return {};
}

}  // namespace

std::string own_host(const Config& config) {
  return (*config.hostid).empty() ? transport::host_identity(transport::Environment::of_process()) : *config.hostid;
}

std::vector<schedule::RankOrder> ranks_on_hosts(const std::vector<std::string>& hosts) {
  std::map<std::string_view, size_t> known;
  std::vector<schedule::RankOrder> on;
  for (size_t rank = 0; rank < hosts.size(); ++rank) {
    const auto [host, is_new] = known.emplace(hosts[rank], on.size());
    if (is_new) on.emplace_back();
    on[host->second].push_back(static_cast<Rank>(rank));
  }
  return on;
}

bool are_alike(const std::vector<schedule::RankOrder>& on_hosts) {
  return std::ranges::all_of(on_hosts, [&](const auto& ranks) { return ranks.size() == on_hosts[0].size(); });
}

Result<std::vector<Facts>> exchange_facts(transport::Bootstrap& bootstrap, const Config& config, std::string constants,
                                          const std::optional<topo::GpuRow>& gpu) {
  const std::vector<uint64_t> processors = own_processors();
  std::vector<std::string> backends;
  std::vector<transport::Device::Port> ports;
  for (transport::Device& device : transport::devices(*config.transport)) {
    backends.push_back(std::move(device.backend));
    std::ranges::move(device.ports, std::back_inserter(ports));
  }
  const Facts own{std::string(profile_version),
                  own_host(config),
                  processors,
                  numa_of(processors, "/sys/devices/system/node"),
                  std::move(backends),
                  std::move(ports),
                  *config.transport,
                  *config.slot_bytes,
                  *config.slots,
                  *config.channels,
                  *config.memory_bytes,
                  *config.algorithm,
                  *config.grid,
                  *config.numerics,
                  std::move(constants),
                  config.slot_bytes.origin == "default" && config.slots.origin == "default",
                  gpu ? topo::text(*gpu) : ""};
  std::vector<Facts> all;
  for (const std::string& text : GYRE_TRY(bootstrap.all_gather(nlohmann::json(own).dump()))) {
    const auto json = nlohmann::json::parse(text, nullptr, false);
    // Facts of another version may have another shape, so the version comes first.
    const bool told = json.is_object() && json.contains("version") && json["version"].is_string();
    const std::string theirs = told ? json["version"].get<std::string>() : "unknown";
    if (theirs != profile_version) {
      return Error{Code::invalid_usage,
                   fmt::format("ranks differ: rank {} runs gyre \"{}\", this one \"{}\"", all.size(), theirs, profile_version)};
    }
    try {
      all.push_back(json.get<Facts>());
    } catch (const nlohmann::json::exception& error) {
      return Error{Code::remote, fmt::format("rank {} tells of itself what can't be read: {}", all.size(), error.what())};
    }
  }
  GYRE_TRY(must_agree(all, "GYRE_TRANSPORT", [](const Facts& f) { return f.transport; }));
  GYRE_TRY(must_agree(all, "GYRE_SLOT_BYTES", [](const Facts& f) { return f.slot_bytes; }));
  GYRE_TRY(must_agree(all, "GYRE_SLOTS", [](const Facts& f) { return f.slots; }));
  GYRE_TRY(must_agree(all, "GYRE_CHANNELS", [](const Facts& f) { return f.channels; }));
  GYRE_TRY(must_agree(all, "GYRE_ALGORITHM", [](const Facts& f) { return f.algorithm; }));
  GYRE_TRY(must_agree(all, "GYRE_GRID", [](const Facts& f) { return f.grid; }));
  GYRE_TRY(must_agree(all, "GYRE_NUMERICS", [](const Facts& f) { return f.numerics; }));
  GYRE_TRY(must_agree(all, "GYRE_CONSTANTS with the digest", [](const Facts& f) { return f.constants; }));
  return all;
}

Placed placed(const std::vector<Facts>& all, const topo::ChannelOrders& channels) {
  std::vector<std::string> hosts(all.size());
  std::ranges::transform(all, hosts.begin(), &Facts::host);
  auto on = ranks_on_hosts(hosts);
  Placed out;
  if (are_alike(on)) out.hosts = {static_cast<int>(on[0].size()), static_cast<int>(on.size())};
  const auto numa = [&](Rank rank) { return all[static_cast<size_t>(rank)].numa; };
  for (auto& ranks : on) {
    const bool bound = std::ranges::all_of(ranks, [&](Rank rank) { return numa(rank) >= 0; });
    if (bound) std::ranges::stable_sort(ranks, {}, numa);
    out.order.insert(out.order.end(), ranks.begin(), ranks.end());
  }
  if (!channels.rings.empty()) out.order = channels.rings[0];
  out.channels = channels;
  if (std::ranges::is_sorted(out.order)) out.order.clear();
  return out;
}

HostLoad host_load(const std::vector<Facts>& all, Rank rank) {
  const std::string& host = all[static_cast<size_t>(rank)].host;
  std::vector<uint64_t> processors;
  int ranks = 0;
  for (const Facts& facts : all) {
    if (facts.host != host) continue;
    ++ranks;
    processors.resize(std::max(processors.size(), facts.processors.size()));
    for (size_t i = 0; i < facts.processors.size(); ++i) processors[i] |= facts.processors[i];
  }
  int count = 0;
  for (const uint64_t word : processors) count += std::popcount(word);
  return {count, ranks > count, ranks};
}

}  // namespace gyre::engine
