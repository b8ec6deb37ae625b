#include "topo/channels.h"

#include <algorithm>

#include "topo/channel_search.h"

namespace gyre::topo {
namespace {

// In one direction, of the GPU that has the fewest.
int fewest_nvlinks(const NodeLinks& links) {
  int fewest = most_channels;
  for (int gpu = 0; gpu < links.gpus; ++gpu) {
    int own = links.switched[static_cast<size_t>(gpu)];
    for (int to = 0; to < links.gpus; ++to) own += links.direct[links.at(gpu, to)];
    fewest = std::min(fewest, own);
  }
  return fewest;
}

// Where both rails have but one GPU, and the same, it can't be both first and last: it is first.
Ends ends_of(const NodeLinks& links, const Passage& passage) {
  if (passage.in < 0) return {};
  Ends ends{links.rails[static_cast<size_t>(passage.in)].near, links.rails[static_cast<size_t>(passage.out)].near, false};
  if (links.gpus > 1 && ends.first.size() == 1) std::erase(ends.last, ends.first[0]);
  return ends;
}

int unreachable_hops(const NodeLinks& links, const std::vector<int>& order) {
  int count = 0;
  for (size_t i = 1; i < order.size(); ++i) count += links.reaches(order[i - 1], order[i]) ? 0 : 1;
  return count;
}

// What begins and ends near its rails, unless fewer hops are between GPUs that do not reach each other in an order that does not.
std::vector<int> nearest_path(const NodeLinks& links, const Ends& ends, int most_steps) {
  std::vector<int> order = nearest_order(links, ends, most_steps);
  const int lacking = unreachable_hops(links, order);
  if (lacking == 0) return order;
  std::vector<int> off_rails = nearest_order(links, {}, most_steps);
  return unreachable_hops(links, off_rails) < lacking ? off_rails : order;
}

}  // namespace

std::vector<Channel> rings_inside(const NodeLinks& links) {
  if (links.gpus == 0) return {};
  std::vector<Channel> out;
  // A third for as many as one GPU's NVLinks could carry, which is what switches do, a third for all smaller numbers, a third for the
  // nearest.
  constexpr int third = most_search_steps / 3;
  const int most = links.gpus > 1 ? fewest_nvlinks(links) : 0;
  for (int count = most; count > 0 && out.empty(); --count) {
    TakenLinks taken(links);
    const std::vector<Ends> wanted(static_cast<size_t>(count), Ends{{}, {}, true});
    const int steps = count == most ? third : third / (most - 1);
    for (auto& order : orders_over_nvlinks(links, wanted, taken, steps)) out.push_back({std::move(order), -1, -1, true});
  }
  if (out.empty()) out.push_back({nearest_order(links, {{}, {}, true}, third), -1, -1, false});
  return out;
}

std::vector<Channel> paths_through(const NodeLinks& links, std::span<const Passage> passages, int most_steps) {
  std::vector<Ends> wanted;
  for (const Passage& passage : passages) wanted.push_back(ends_of(links, passage));
  TakenLinks taken(links);
  std::vector<std::vector<int>> orders = orders_over_nvlinks(links, wanted, taken, most_steps / 4);
  const bool together = !orders.empty();
  std::vector<Channel> out;
  const int each = std::max(1, most_steps / 4 / std::max(1, static_cast<int>(passages.size())));  // of three searches
  for (size_t i = 0; i < passages.size(); ++i) {
    // Not all have NVLinks of their own: one after the other, as far as they go.
    if (!together) orders = orders_over_nvlinks(links, {&wanted[i], 1}, taken, each);
    const bool found = !orders.empty();
    std::vector<int> order = found ? std::move(orders[together ? i : 0]) : nearest_path(links, wanted[i], each);
    out.push_back({std::move(order), passages[i].in, passages[i].out, found && links.gpus > 1});
  }
  return out;
}

}  // namespace gyre::topo
