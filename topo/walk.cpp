// The Profile of a schedule that is there: one pass over its steps in an order in which they can run, for each measure one forwards, for
// the earliest that a step can be, and for the ports one backwards, for what follows it at the least.
#include <algorithm>

#include "topo/profile_grid.h"
#include "topo/walk_order.h"

namespace gyre::topo {
namespace {

using schedule::Schedule;

// What one direction of a rank's port, or of a node's, has to do.
struct Port {
  int64_t chunks = 0;
  Tally head, tail;
  bool used = false;

  void use(int64_t count, const Tally& earliest, const Tally& after, Longest measure) {
    if (!used || less(earliest, head, measure)) head = earliest;
    if (!used || less(after, tail, measure)) tail = after;
    used = true;
    chunks += count;
  }
};

class Walk {
 public:
  Walk(const Schedule& schedule, const Placement& placement)
      : schedule_(schedule), placement_(placement), order_(walk_order(schedule, placement)) {}

  Profile run() {
    Profile out;
    out.chunks = schedule_.chunks;
    out.longest_message = schedule_.longest_message();
    out.channels = schedule_.channels;
    out.messages = order_.busiest_connection;
    for (const Message& m : order_.messages) out.widest[m.link] = std::max(out.widest[m.link], m.chunks);
    for (size_t i = 0; i < measures; ++i) {
      const auto measure = static_cast<Longest>(i);
      forwards(measure, out.path[i], out.span[i]);
      if (measure != Longest::network_hops) continue;
      backwards(measure);
      ports(out, measure);
    }
    processors(out);
    out.waits = waits(order_, schedule_.programs.size());
    return out;
  }

 private:
  Tally departure(const Message& m) const { return end_[m.from] + hops_over(m.link, 0, m.before); }

  // When each step has ended, at the earliest: the latest of them, and the longest that a program takes from its first step on. Messages
  // that one step waits for pass the rank's port one by one.
  void forwards(Longest measure, Tally& path, Tally& span) {
    end_.resize(order_.visits.size());
    first_.resize(schedule_.programs.size());
    for (size_t i = 0; i < order_.visits.size(); ++i) {
      const Visit& visit = order_.visits[i];
      const auto received = order_.received(visit);
      Tally start;
      if (visit.before >= 0) start = end_[static_cast<size_t>(visit.before)];
      if (received.size() == 1) {
        const Message& m = order_.messages[received[0]];
        const Tally passed = departure(m) + hops_over(m.link, 1, m.chunks);
        if (less(start, passed, measure)) start = passed;
      } else if (!received.empty()) {
        for (const size_t link : {inside, between}) queue(received, link, measure, start);
      }
      end_[i] = start + visit.work;
      if (less(path, end_[i], measure)) path = end_[i];
      if (visit.before < 0) first_[visit.program] = start;
      const Tally taken = end_[i] - first_[visit.program];
      if (less(span, taken, measure)) span = taken;
    }
  }
  void queue(std::span<const uint32_t> received, size_t link, Longest measure, Tally& start) {
    queue_.clear();
    for (const uint32_t id : received) {
      if (order_.messages[id].link == link) queue_.emplace_back(departure(order_.messages[id]), id);
    }
    if (queue_.empty()) return;
    std::sort(queue_.begin(), queue_.end(), [&](const auto& a, const auto& b) {
      return less(a.first, b.first, measure) || (!less(b.first, a.first, measure) && a.second < b.second);
    });
    Tally passed;
    for (const auto& [left, id] : queue_) {
      if (less(passed, left, measure)) passed = left;
      passed += hops_over(link, 0, order_.messages[id].chunks);
    }
    passed += hops_over(link, 1, 0);
    if (less(start, passed, measure)) start = passed;
  }

  // What follows each step at the least.
  void backwards(Longest measure) {
    tail_.assign(order_.visits.size(), {});
    for (size_t i = order_.visits.size(); i-- > 0;) {
      const Visit& visit = order_.visits[i];
      for (const Message& m : order_.sent(visit)) {
        const Tally way = hops_over(m.link, 0, m.before + m.chunks) + arriving(m);
        if (less(tail_[i], way, measure)) tail_[i] = way;
      }
      if (visit.before < 0) continue;
      const Tally way = visit.work + tail_[i];
      Tally& before = tail_[static_cast<size_t>(visit.before)];
      if (less(before, way, measure)) before = way;
    }
  }
  Tally arriving(const Message& m) const { return hops_over(m.link, 1, 0) + order_.visits[m.to].work + tail_[m.to]; }

  void ports(Profile& out, Longest measure) const {
    const auto ranks = static_cast<size_t>(schedule_.ranks);
    const auto nodes = static_cast<size_t>(placement_.nodes(schedule_.ranks));
    std::vector<Port> rank_ports(ranks * link_kinds * 2);
    std::vector<Port> node_ports(nodes * 2);
    for (const Message& m : order_.messages) {
      const Tally left = departure(m);
      const Tally after = arriving(m);
      for (const bool in : {false, true}) {
        const Rank rank = this->rank(order_.visits[in ? m.to : m.from]);
        rank_ports[(static_cast<size_t>(rank) * link_kinds + m.link) * 2 + (in ? 1 : 0)].use(m.chunks, left, after, measure);
        if (m.link != between) continue;
        node_ports[static_cast<size_t>(placement_.node(rank)) * 2 + (in ? 1 : 0)].use(m.chunks, left, after, measure);
      }
    }
    const auto take = [&](Busiest& busiest, const Port& port) {
      const Tally around = port.head + port.tail;
      const bool more = port.chunks > busiest.chunks || (port.chunks == busiest.chunks && less(busiest.around, around, measure));
      if (port.used && more) busiest = {port.chunks, around};
    };
    for (size_t i = 0; i < rank_ports.size(); ++i) take(out.port[i / 2 % link_kinds], rank_ports[i]);
    for (const Port& port : node_ports) take(out.node_port, port);
  }

  void processors(Profile& out) const {
    std::vector<Load> ranks(static_cast<size_t>(schedule_.ranks));
    for (const Visit& visit : order_.visits) ranks[static_cast<size_t>(rank(visit))].work += visit.work;
    take_loads(out, ranks, placement_, 1);
  }
  Rank rank(const Visit& visit) const { return schedule_.programs[visit.program].rank; }

  const Schedule& schedule_;
  const Placement& placement_;
  WalkOrder order_;
  std::vector<Tally> end_, tail_;                  // [step]
  std::vector<Tally> first_;                       // [program]: when its first step began
  std::vector<std::pair<Tally, uint32_t>> queue_;  // of one step, over one kind of link
};

}  // namespace

Profile profile(const Schedule& schedule, const Placement& placement) { return Walk(schedule, placement).run(); }

}  // namespace gyre::topo
