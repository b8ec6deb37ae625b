#include "topo/nccl/published.h"

#include <algorithm>
#include <bit>

namespace gyre::topo::nccl {
namespace {

double at(const ByProtocol& values, Protocol protocol) { return values[static_cast<size_t>(protocol)]; }

int whole_log2(uint64_t number) { return static_cast<int>(std::bit_width(number)) - 1; }

}  // namespace

// Of a ring, one after the other.
int PublishedModel::hops(Collective collective) const {
  if (rooted(collective)) return job_.ranks;
  return (collective == Collective::all_reduce ? 2 : 1) * (job_.ranks - 1);
}

double PublishedModel::ring_latency(Collective collective, Protocol protocol) const {
  const Published::OfAlgorithm& ring = published_.ring;
  const double local = at(machine_.nvlink ? ring.nvlink : ring.pci, protocol);
  if (rooted(collective)) {
    const bool one_node = job_.nodes == 1;
    if (channels_.same) return one_node ? local : at(ring.network, protocol);
    const Published::OfAlgorithm& whose = protocol == Protocol::simple ? published_.tree : ring;
    return hops(collective) * at(one_node ? (machine_.nvlink ? whose.nvlink : whose.pci) : whose.network, protocol);
  }
  // Without neighbours on the node nothing hides the network.
  const double network = at(job_.ranks == job_.nodes ? published_.tree.network : ring.network, protocol);
  const double posting =
      published_.overhead[static_cast<size_t>(machine_.cpu)] * (protocol == Protocol::simple ? published_.simple_overheads : 1);
  const int network_hops = job_.nodes == 1 ? 0 : (collective == Collective::all_reduce ? 2 : 1) * (job_.nodes - 1);
  return (hops(collective) - network_hops) * std::max(local, job_.nodes == 1 ? 0 : posting) + network_hops * network;
}

double PublishedModel::latency(Collective collective, const Entry& entry) const {
  if (entry.algorithm == Algorithm::ring) return at(published_.ring.base, entry.protocol) + ring_latency(collective, entry.protocol);
  const Published::OfAlgorithm& tree = published_.tree;
  const double local = at(machine_.nvlink ? tree.nvlink : tree.pci, entry.protocol);
  const int levels = whole_log2(static_cast<uint64_t>(job_.nodes));
  const int on_a_node = job_.ranks / job_.nodes;
  return at(tree.base, entry.protocol) + 2 * ((on_a_node - 1) * local + levels * at(tree.network, entry.protocol));
}

// What goes over the busiest link.
double PublishedModel::bus_bandwidth(const Entry& entry) const {
  const auto nodes = static_cast<size_t>(std::min(job_.nodes, 3) - 1);
  const double most = channels_.count * channels_.rate;
  const auto bound = [&](const ByNodes& of) { return channels_.count * of[machine_.generation][nodes]; };
  // On several nodes LL's bound goes by the processor, in the rows of two generations.
  const double ll = published_.ll[job_.nodes == 1 ? machine_.generation : static_cast<size_t>(machine_.cpu)][nodes];
  if (entry.algorithm == Algorithm::ring) {
    if (entry.protocol == Protocol::ll) return std::min(ll, most * published_.ring_ll_share);
    if (entry.protocol == Protocol::ll128) return std::min(most * published_.ring_ll128_share, bound(published_.ring_ll128));
    return most;
  }
  double out = std::min(most * published_.tree_share, bound(published_.tree_rate));
  if (entry.protocol == Protocol::ll) out = std::min(out * published_.tree_ll_share, ll);
  const double ll128_share = job_.nodes == 1 ? published_.tree_ll128_share_one_node : published_.tree_ll128_share_nodes;
  if (entry.protocol == Protocol::ll128) out = std::min(out * ll128_share, bound(published_.tree_ll128));
  return machine_.simple_tree ? out * published_.simple_tree_share : out;
}

double PublishedModel::bandwidth(Collective collective, const Entry& entry) const {
  const double ratio = entry.algorithm == Algorithm::tree ? 0.5 : static_cast<double>(job_.ranks) / hops(collective);
  return bus_bandwidth(entry) * ratio;
}

std::optional<double> PublishedModel::seconds(Collective collective, const Entry& entry, uint64_t bytes) const {
  if (std::find(collectives.begin(), collectives.end(), collective) == collectives.end() || !has(machine_, collective, entry))
    return std::nullopt;
  double wait = latency(collective, entry);
  double rate = bandwidth(collective, entry);
  const int size = whole_log2(bytes >> 6);
  if (entry.algorithm == Algorithm::tree && size >= 0 && static_cast<size_t>(size) < corrections)
    rate *= published_.correction[static_cast<size_t>(entry.protocol)][static_cast<size_t>(size)];
  const double parts = static_cast<double>(channels_.run) * static_cast<double>(job_.ranks);
  if (entry == Entry{Algorithm::ring, Protocol::simple} && job_.nodes > 1 && collective == Collective::all_reduce &&
      static_cast<double>(bytes) >= parts * published_.plateau_bytes)
    wait *= machine_.generation == 0 ? published_.plateau_before_ampere : published_.plateau;
  return wait + static_cast<double>(bytes) / rate;
}

}  // namespace gyre::topo::nccl
