// By which of a host's RDMA ports a worker goes: who opens them and who reckons with them ask here.
#pragma once
#include <algorithm>
#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <tuple>
#include <vector>

namespace gyre::transport {

inline constexpr size_t most_ports = 8;  ///< of a connection

/// Of these the ones that are named, or all where none is; most_ports at most, a port of each NIC before any second one. In the order of
/// their names, which is the peer's order too.
template <class Port>
std::vector<Port> narrowed(std::vector<Port> all, std::span<const std::string> names) {
  const auto named = [&](const Port& port) { return std::ranges::find(names, port.name) != names.end(); };
  if (std::ranges::any_of(all, named)) std::erase_if(all, std::not_fn(named));
  const auto name = [](const Port& port) { return std::tuple(port.name.size(), port.name); };
  std::ranges::sort(all, {}, [&](const Port& port) { return std::tuple(port.port, name(port)); });
  if (all.size() > most_ports) all.erase(all.begin() + most_ports, all.end());
  std::ranges::sort(all, {}, name);
  return all;
}

}  // namespace gyre::transport
