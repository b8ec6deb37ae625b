// How often programs wait with nothing else under way (Profile::waits).
#include <algorithm>
#include <utility>

#include "topo/walk_order.h"

namespace gyre::topo {
namespace {

using Waits = std::array<int64_t, link_kinds>;

bool receives(const schedule::Step& step) { return step.from.count > 0; }
bool only_receives(const schedule::Step& step) { return receives(step) && step.to.count == 0; }

// Of each visit: how many times its program has waited before, if every step that receives waits; those that only receive, one after the
// other, wait together.
std::vector<int64_t> turns(const WalkOrder& order) {
  std::vector<int64_t> out(order.visits.size());
  for (size_t i = 0; i < order.visits.size(); ++i) {
    const Visit& visit = order.visits[i];
    if (visit.before < 0) continue;
    const auto last = static_cast<size_t>(visit.before);
    const schedule::Step& before = *order.visits[last].step;
    const bool together = only_receives(before) && only_receives(*visit.step);
    out[i] = out[last] + (receives(before) && !together ? 1 : 0);
  }
  return out;
}

/// A program's, of which a turn counts once, for its slowest link.
struct Waited {
  Waits times{};
  int64_t turn = -1;  // the last that counted
  size_t link = inside;

  void add(int64_t now, size_t over) {
    if (turn == now && link >= over) return;
    if (turn == now) --times[link];
    turn = now, link = over;
    ++times[over];
  }
};

}  // namespace

// A step that receives passes each slice on as it comes, but one that only sends begins when those before it have all slices: who receives
// of it on the same turn has nothing else to do.
Waits waits(const WalkOrder& order, size_t programs) {
  const std::vector<int64_t> turn = turns(order);
  std::vector<bool> waiting(programs);  // at all: who does not, runs ahead
  for (const Visit& visit : order.visits) waiting[visit.program] = waiting[visit.program] || receives(*visit.step);
  std::vector<Waited> waited(programs);
  for (size_t i = 0; i < order.visits.size(); ++i) {
    for (const uint32_t id : order.received(order.visits[i])) {
      const Message& m = order.messages[id];
      const Visit& sender = order.visits[m.from];
      if (receives(*sender.step) || !waiting[sender.program] || turn[m.from] < turn[i]) continue;
      waited[order.visits[i].program].add(turn[i], m.link);
    }
  }
  Waits most{};
  for (const Waited& one : waited) {
    if (std::pair(one.times[between], one.times[inside]) > std::pair(most[between], most[inside])) most = one.times;
  }
  return most;
}

}  // namespace gyre::topo
