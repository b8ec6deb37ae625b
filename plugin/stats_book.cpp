#include "plugin/stats_book.h"

#include <algorithm>

namespace gyre::plugin {
namespace {

constexpr const char* other_peers = "others";

Figures figures_of(const Counters& c) { return {c.bytes.get(), c.messages.get(), c.retries.get(), c.waited_ns.get(), c.errors.get()}; }

}  // namespace

void StatsBook::opened(ConnectionStats about, const Counters& counters) {
  about.number = ++opened_;
  open_.push_back({std::move(about), &counters});
}

void StatsBook::closed(const Counters& counters) {
  const auto found = std::find_if(open_.begin(), open_.end(), [&](const Open& open) { return open.counters == &counters; });
  if (found == open_.end()) return;
  found->about.figures = figures_of(counters);
  found->about.state = "closed";
  keep(std::move(found->about));
  open_.erase(found);
}

void StatsBook::keep(ConnectionStats connection) {
  closed_.push_back(std::move(connection));
  if (closed_.size() <= limits_.closed) return;
  EarlierStats& sum = earlier_to(closed_.front());
  ++sum.connections;
  sum.figures += closed_.front().figures;
  closed_.pop_front();
}

EarlierStats& StatsBook::earlier_to(const ConnectionStats& connection) {
  auto& peers = earlier_[connection.direction];
  const bool room = peers.size() < limits_.peers || peers.contains(connection.peer);
  const std::string peer = room ? connection.peer : other_peers;
  return peers.try_emplace(peer, EarlierStats{connection.direction, peer}).first->second;
}

StatsReport StatsBook::report() const {
  StatsReport all;
  all.devices = devices_;
  all.connections.assign(closed_.begin(), closed_.end());
  for (const Open& open : open_) {
    ConnectionStats& told = all.connections.emplace_back(open.about);
    told.figures = figures_of(*open.counters);
    if (told.figures.errors > 0) told.state = "lost";
  }
  std::sort(all.connections.begin(), all.connections.end(), [](const auto& a, const auto& b) { return a.number < b.number; });
  for (const auto& [direction, peers] : earlier_)
    for (const auto& [peer, sum] : peers) all.earlier.push_back(sum);
  return all;
}

}  // namespace gyre::plugin
