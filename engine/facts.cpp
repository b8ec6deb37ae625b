#include "engine/facts.h"

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <bit>
#include <nlohmann/json.hpp>

#include "base/version.h"
#include "topo/constants.h"
#include "transport/launch.h"
#include "transport/transport.h"

namespace gyre::engine {

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Facts, version, host, processors, backends, transport, slot_bytes, slots, channels, memory_bytes,
                                   algorithm, grid, numerics, constants, slots_by_default)

namespace {

std::vector<std::string> own_backends(std::string_view transport) {
  std::vector<std::string> names;
  for (const transport::Device& device : transport::devices(transport)) names.push_back(device.backend);
  return names;
}

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

Status must_agree(const std::vector<Facts>& all, std::string_view what, auto fact) {
  for (size_t rank = 1; rank < all.size(); ++rank) {
    if (fact(all[rank]) == fact(all[0])) continue;
    return Error{Code::invalid_usage,
                 fmt::format("ranks differ: rank {} has {}={}, rank 0 has {}", rank, what, fact(all[rank]), fact(all[0]))};
  }
  return {};
}

}  // namespace

Result<std::vector<Facts>> exchange_facts(transport::Bootstrap& bootstrap, const Config& config) {
  const std::string host = (*config.hostid).empty() ? transport::host_identity(transport::Environment::of_process()) : *config.hostid;
  const auto constants = topo::digest(*config.constants);
  if (!constants) {
    bootstrap.fail(constants.error());  // the others are about to wait for us
    return constants.error();
  }
  const Facts own{std::string(version), host,
                  own_processors(),     own_backends(*config.transport),
                  *config.transport,    *config.slot_bytes,
                  *config.slots,        *config.channels,
                  *config.memory_bytes, *config.algorithm,
                  *config.grid,         *config.numerics,
                  *constants,           config.slot_bytes.origin == "default" && config.slots.origin == "default"};
  std::vector<Facts> all;
  for (const std::string& text : GYRE_TRY(bootstrap.all_gather(nlohmann::json(own).dump()))) {
    const auto json = nlohmann::json::parse(text, nullptr, false);
    // Facts of another version may have another shape, so the version comes first.
    const std::string theirs = json.is_object() && json.contains("version") ? json["version"].dump() : "unknown";
    if (theirs != nlohmann::json(version).dump()) {
      return Error{Code::invalid_usage, fmt::format("ranks differ: rank {} runs gyre {}, this one \"{}\"", all.size(), theirs, version)};
    }
    all.push_back(json.get<Facts>());
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

std::vector<int> host_grid(const std::vector<Facts>& all) {
  size_t each = 1;
  while (each < all.size() && all[each].host == all[0].host) ++each;
  if (all.size() % each != 0) return {};
  std::vector<std::string_view> hosts;
  for (size_t first = 0; first < all.size(); first += each) {
    for (size_t rank = first; rank < first + each; ++rank) {
      if (all[rank].host != all[first].host) return {};
    }
    if (std::find(hosts.begin(), hosts.end(), all[first].host) != hosts.end()) return {};
    hosts.push_back(all[first].host);
  }
  return {static_cast<int>(each), static_cast<int>(hosts.size())};
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
