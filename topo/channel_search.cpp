#include "topo/channel_search.h"

#include <algorithm>
#include <limits>
#include <numeric>

namespace gyre::topo {
namespace {

bool allows(const std::vector<int>& ends, int gpu) { return ends.empty() || std::ranges::find(ends, gpu) != ends.end(); }

std::vector<int> all_of(int gpus) {
  std::vector<int> all(static_cast<size_t>(gpus));
  std::iota(all.begin(), all.end(), 0);
  return all;
}

// A ring can be said to begin anywhere.
std::vector<int> beginnings(const NodeLinks& links, const Ends& ends) {
  if (!ends.first.empty()) return ends.first;
  return ends.closes ? std::vector{0} : all_of(links.gpus);
}

// The GPUs that an order has not passed, from its last one's number on and around.
std::vector<int> not_passed(const NodeLinks& links, const std::vector<int>& order) {
  std::vector<bool> passed(static_cast<size_t>(links.gpus));
  for (const int gpu : order) passed[static_cast<size_t>(gpu)] = true;
  std::vector<int> rest;
  for (int by = 1; by < links.gpus; ++by) {
    const int gpu = (order.back() + by) % links.gpus;
    if (!passed[static_cast<size_t>(gpu)]) rest.push_back(gpu);
  }
  return rest;
}

// What a step counts: it looks at every GPU, and was timed with 16.
int step_of(const NodeLinks& links) { return std::max(1, links.gpus / 16); }

class OverNvlinks {
 public:
  OverNvlinks(const NodeLinks& links, std::span<const Ends> wanted, TakenLinks& taken, int most_steps)
      : links_(links), wanted_(wanted), taken_(taken), most_steps_(most_steps) {}

  std::vector<std::vector<int>> run() { return next() ? found_ : std::vector<std::vector<int>>(); }

 private:
  bool spent() { return (steps_ += step_of(links_)) > most_steps_; }

  bool next() {
    if (found_.size() == wanted_.size()) return true;
    const Ends& ends = wanted_[found_.size()];
    for (size_t before = found_.size(); before-- > 0;) {
      if (spent()) return false;
      const std::vector<int> reverse(found_[before].rbegin(), found_[before].rend());
      if (allows(ends.first, reverse.front()) && allows(ends.last, reverse.back()) && whole(reverse, ends)) return true;
    }
    for (const int first : beginnings(links_, ends)) {
      std::vector<int> order{first};
      if (extended(order, ends)) return true;
    }
    return false;
  }

  // Takes the links of a whole order, as extended() does of one found step by step.
  bool whole(const std::vector<int>& given, const Ends& ends, size_t at = 1) {
    if (at == given.size()) return closed(given, ends);
    if (!taken_.free(given[at - 1], given[at])) return false;
    const bool direct = taken_.take(given[at - 1], given[at]);
    if (whole(given, ends, at + 1)) return true;
    taken_.give(given[at - 1], given[at], direct);
    return false;
  }

  bool extended(std::vector<int>& order, const Ends& ends) {
    if (spent()) return false;
    if (static_cast<int>(order.size()) == links_.gpus) return allows(ends.last, order.back()) && closed(order, ends);
    const int from = order.back();
    std::vector<int> to = not_passed(links_, order);
    std::erase_if(to, [&](int gpu) { return !taken_.free(from, gpu); });
    std::ranges::stable_sort(to, std::ranges::greater(), [&](int gpu) { return taken_.free_direct(from, gpu); });
    for (const int gpu : to) {
      const bool direct = taken_.take(from, gpu);
      order.push_back(gpu);
      if (extended(order, ends)) return true;
      order.pop_back();
      taken_.give(from, gpu, direct);
    }
    return false;
  }

  bool closed(const std::vector<int>& order, const Ends& ends) {
    if (ends.closes && !taken_.free(order.back(), order.front())) return false;
    const bool direct = ends.closes && taken_.take(order.back(), order.front());
    found_.push_back(order);
    if (next()) return true;
    found_.pop_back();
    if (ends.closes) taken_.give(order.back(), order.front(), direct);
    return false;
  }

  const NodeLinks& links_;
  std::span<const Ends> wanted_;
  TakenLinks& taken_;
  std::vector<std::vector<int>> found_;
  int most_steps_;
  int steps_ = 0;
};

class Nearest {
 public:
  /// One way through is looked for at least.
  Nearest(const NodeLinks& links, const Ends& ends, int most_steps)
      : links_(links), ends_(ends), most_steps_(std::max(most_steps, (links.gpus + 1) * step_of(links))) {}

  std::vector<int> run() {
    for (const int first : beginnings(links_, ends_)) {
      if (links_.gpus == 1 || ends_.last != std::vector{first}) extend({first}, 0);
    }
    return best_.empty() ? all_of(links_.gpus) : best_;
  }

 private:
  // A hop of a kind weighs more than all hops of nearer kinds.
  int64_t weight(int from, int to) const {
    constexpr int unreachable = static_cast<int>(Distance::system) + 1;
    const auto distance = static_cast<int>(links_.distance[links_.at(from, to)]);
    return links_.nvlink(from, to) ? 0 : int64_t{1} << (8 * (links_.reaches(from, to) ? distance : unreachable));
  }

  void extend(std::vector<int> order, int64_t so_far) {
    if (so_far >= lightest_ || (steps_ += step_of(links_)) > most_steps_) return;
    if (static_cast<int>(order.size()) == links_.gpus) {
      if (!allows(ends_.last, order.back())) return;
      if (ends_.closes && links_.gpus > 1) so_far += weight(order.back(), order.front());
      if (so_far < lightest_) lightest_ = so_far, best_ = order;
      return;
    }
    std::vector<int> to = not_passed(links_, order);
    // What may stand last is kept for there while there is another.
    const bool spare =
        static_cast<int>(order.size()) + 1 < links_.gpus && std::ranges::count_if(to, [&](int gpu) { return last(gpu); }) == 1;
    if (spare) std::erase_if(to, [&](int gpu) { return last(gpu); });
    std::ranges::stable_sort(to, {}, [&](int gpu) { return weight(order.back(), gpu); });
    for (const int gpu : to) {
      order.push_back(gpu);
      extend(order, so_far + weight(order[order.size() - 2], gpu));
      order.pop_back();
    }
  }
  bool last(int gpu) const { return !ends_.last.empty() && allows(ends_.last, gpu); }

  const NodeLinks& links_;
  const Ends& ends_;
  std::vector<int> best_;
  int64_t lightest_ = std::numeric_limits<int64_t>::max();
  int most_steps_;
  int steps_ = 0;
};

}  // namespace

bool TakenLinks::take(int from, int to) {
  const bool direct = free_direct(from, to) > 0;
  if (direct) {
    ++direct_[links_.at(from, to)];
  } else {
    ++out_[static_cast<size_t>(from)], ++in_[static_cast<size_t>(to)];
  }
  return direct;
}

void TakenLinks::give(int from, int to, bool direct) {
  if (direct) {
    --direct_[links_.at(from, to)];
  } else {
    --out_[static_cast<size_t>(from)], --in_[static_cast<size_t>(to)];
  }
}

std::vector<std::vector<int>> orders_over_nvlinks(const NodeLinks& links, std::span<const Ends> wanted, TakenLinks& taken, int most_steps) {
  return OverNvlinks(links, wanted, taken, most_steps).run();
}

std::vector<int> nearest_order(const NodeLinks& links, const Ends& ends, int most_steps) { return Nearest(links, ends, most_steps).run(); }

}  // namespace gyre::topo
