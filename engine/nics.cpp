#include "engine/nics.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "topo/constants.h"
#include "transport/ports.h"

namespace gyre::engine {
namespace {

constexpr int64_t typical_mbit_per_s = 200'000;  // of host_verbs in the constants compiled in

bool cost_the_same(const schedule::LinkClass& a, const schedule::LinkClass& b) {
  return a.alpha == b.alpha && a.beta == b.beta && a.overhead == b.overhead && a.by_processor == b.by_processor;
}

std::string in_words(const Nics& nics) {
  const std::string often = nics.per_node > 1 ? fmt::format(", {} times on a host", nics.per_node) : "";
  return fmt::format("typical figures, for the {} Gbit/s that a rank's {} port{} together{}", static_cast<double>(nics.mbit_per_s) / 1000,
                     nics.ports, nics.ports == 1 ? " has" : "s have", often);
}

}  // namespace

std::optional<Nics> nics(const std::vector<Facts>& facts, std::span<const std::string> near) {
  std::map<std::string_view, std::map<std::string, int64_t, std::less<>>> hosts;
  Nics least{0, INT64_MAX};
  for (const Facts& each : facts) {
    const auto ports = transport::narrowed(each.ports, near);
    Nics own{ports.size(), 0};
    for (const auto& [name, number, mbit_per_s] : ports) {
      if (mbit_per_s <= 0) return {};
      own.mbit_per_s += mbit_per_s;
      hosts[each.host][name] = mbit_per_s;
    }
    if (ports.empty()) return {};
    if (own.mbit_per_s < least.mbit_per_s) least = own;
  }
  int64_t of_host = INT64_MAX;
  for (const auto& [host, ports] : hosts) {
    int64_t all = 0;
    for (const auto& [name, mbit_per_s] : ports) all += mbit_per_s;
    of_host = std::min(of_host, all);
  }
  if (hosts.empty()) return {};
  least.per_node = static_cast<int>(std::min(of_host / least.mbit_per_s, std::ssize(facts)));
  return least;
}

Result<topo::Costs> by_ports(topo::Costs costs, const std::optional<Nics>& nics) {
  schedule::LinkClass& link = costs.link[topo::between];
  const topo::Constants compiled_in = GYRE_TRY(topo::default_constants());
  const topo::Costs typical = GYRE_TRY(compiled_in.machine("host_verbs"));
  if (!nics || !cost_the_same(link, typical.link[topo::between])) return costs;
  link.beta *= static_cast<double>(typical_mbit_per_s) / static_cast<double>(nics->mbit_per_s);
  link.name += ", " + in_words(*nics);
  costs.nics_per_node = nics->per_node;
  return costs;
}

}  // namespace gyre::engine
