#include "topo/host_order.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <utility>

namespace gyre::topo {
namespace {

constexpr int most_looks = 200'000;  // tens of milliseconds

// Depth first, hosts that lack most links first, while there is most choice for them.
class HostSearch {
 public:
  HostSearch(int hosts, const schedule::RankPairs& apart) : rest_(static_cast<size_t>(hosts)), apart_(apart.begin(), apart.end()) {
    std::vector<int> lacks(rest_.size());
    for (const auto& [a, b] : apart) ++lacks[static_cast<size_t>(a)], ++lacks[static_cast<size_t>(b)];
    std::iota(rest_.begin(), rest_.end(), 0);
    std::ranges::stable_sort(rest_, std::ranges::greater(), [&](int host) { return lacks[static_cast<size_t>(host)]; });
  }

  /// Empty: none was found.
  std::vector<int> run() {
    order_.push_back(rest_.front());
    rest_.erase(rest_.begin());
    if (!extend()) return {};
    std::rotate(order_.begin(), std::find(order_.begin(), order_.end(), 0), order_.end());
    return std::move(order_);
  }

 private:
  bool apart(int a, int b) const { return apart_.contains(std::minmax(a, b)); }

  bool extend() {
    if (rest_.empty()) return !apart(order_.back(), order_.front());
    for (size_t i = 0; i < rest_.size(); ++i) {
      if (++looks_ > most_looks) return false;
      if (apart(order_.back(), rest_[i])) continue;
      const auto place = rest_.begin() + static_cast<std::ptrdiff_t>(i);
      order_.push_back(*place);
      rest_.erase(place);
      if (extend()) return true;
      rest_.insert(place, order_.back());
      order_.pop_back();
    }
    return false;
  }

  std::vector<int> order_, rest_;
  std::set<std::pair<Rank, Rank>> apart_;
  int looks_ = 0;
};

}  // namespace

std::vector<int> host_order(int hosts, const schedule::RankPairs& apart) {
  if (!apart.empty()) {
    if (auto found = HostSearch(hosts, apart).run(); !found.empty()) return found;
  }
  std::vector<int> plain(static_cast<size_t>(hosts));
  std::iota(plain.begin(), plain.end(), 0);
  return plain;
}

}  // namespace gyre::topo
