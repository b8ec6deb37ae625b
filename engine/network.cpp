#include "engine/network.h"

#include <algorithm>

namespace gyre::engine {
namespace {

constexpr size_t tcp_slot_bytes = 256 << 10;
constexpr size_t tcp_slots = 4;

bool has(const Facts& facts, std::string_view backend) {
  return std::find(facts.backends.begin(), facts.backends.end(), backend) != facts.backends.end();
}

}  // namespace

bool all_over_tcp(const Config& config, const std::vector<Facts>& facts) {
  if (*config.transport != "auto") return *config.transport == "tcp";
  for (size_t i = 0; i < facts.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      const auto taken = [&](std::string_view name) { return has(facts[i], name) && has(facts[j], name); };
      if (facts[i].host == facts[j].host || taken("verbs") || taken("ucx") || !taken("tcp")) return false;
    }
  }
  return facts.size() > 1;
}

bool hosts_by_verbs(const Config& config, const std::vector<Facts>& facts) {
  const auto one_host = [&](const Facts& f) { return f.host == facts[0].host; };
  const bool all_can = std::ranges::all_of(facts, [](const Facts& f) { return has(f, "verbs"); });
  return all_can && (*config.transport == "auto" || *config.transport == "verbs") && !std::ranges::all_of(facts, one_host);
}

Config suited(Config config, const std::vector<Facts>& facts) {
  const bool by_default = std::all_of(facts.begin(), facts.end(), [](const Facts& f) { return f.slots_by_default; });
  if (!by_default || !all_over_tcp(config, facts)) return config;
  config.slot_bytes.value = tcp_slot_bytes;
  config.slots.value = tcp_slots;
  return config;
}

}  // namespace gyre::engine
