#include "schedule/relayed.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <map>
#include <set>
#include <vector>

namespace gyre::schedule {
namespace {

using Pair = std::pair<Rank, Rank>;  // from and to

std::set<Pair> both_ways(const RankPairs& pairs) {
  std::set<Pair> both(pairs.begin(), pairs.end());
  for (const auto& [a, b] : pairs) both.insert({b, a});
  return both;
}

class Relaying {
 public:
  Relaying(const Schedule& made, std::set<Pair> missing) : made_(made), missing_(std::move(missing)), out_(made) {}

  Result<Schedule> run() {
    for (uint32_t channel = 0; channel < made_.channels; ++channel) GYRE_TRY(route(channel));
    size_t most = 0;
    for (const Routes& routes : routes_) most = std::max(most, routes.size());
    if (most == 0) return std::move(out_);
    add_strands(static_cast<uint32_t>(most));
    for (uint32_t channel = 0; channel < made_.channels; ++channel) redirect(channel);
    return std::move(out_);
  }

 private:
  struct Route {
    std::vector<Rank> way;  // both ends included
    uint32_t strand;        // of those between
  };
  using Routes = std::map<Pair, Route>;

  template <class F>
  void each_program(uint32_t channel, F f) {
    for (uint32_t strand = 0; strand < made_.strands; ++strand) {
      for (Rank rank = 0; rank < made_.ranks; ++rank) f(made_.program(rank, channel, strand));
    }
  }

  // Ways for the channel's messages between ranks that don't reach each other. What has messages of its own carries no others'.
  Status route(uint32_t channel) {
    std::set<Pair> wanted, used;
    each_program(channel, [&](const Program& program) {
      for (const Step& step : program.steps) {
        for (const Rank to : made_.peers(step.to)) {
          const bool relays = missing_.contains({program.rank, to});
          (relays ? wanted : used).insert({program.rank, to});
          if (relays) room_ = std::max(room_, whole_blocks(placed(step.flow())[step.flow().count - 1] + 1));
        }
      }
    });
    Routes& routes = routes_.emplace_back();
    for (const Pair& pair : wanted) {
      Route route{shortest(pair, used), made_.strands + static_cast<uint32_t>(routes.size())};
      if (route.way.empty()) {
        return Error{Code::invalid_usage, fmt::format("no way from rank {} to rank {} on channel {} that others' messages leave free",
                                                      pair.first, pair.second, channel)};
      }
      for (size_t hop = 1; hop < route.way.size(); ++hop) used.insert({route.way[hop - 1], route.way[hop]});
      routes.emplace(pair, std::move(route));
    }
    return {};
  }

  // Breadth first.
  std::vector<Rank> shortest(const Pair& pair, const std::set<Pair>& used) const {
    std::vector<Rank> before(static_cast<size_t>(made_.ranks), -1);
    std::deque<Rank> reached{pair.first};
    for (; !reached.empty() && before[static_cast<size_t>(pair.second)] < 0; reached.pop_front()) {
      for (Rank next = 0; next < made_.ranks; ++next) {
        const Pair hop{reached.front(), next};
        if (next == pair.first || hop.first == next || before[static_cast<size_t>(next)] >= 0 || missing_.contains(hop) ||
            used.contains(hop))
          continue;
        before[static_cast<size_t>(next)] = hop.first;
        reached.push_back(next);
      }
    }
    if (before[static_cast<size_t>(pair.second)] < 0) return {};
    std::vector<Rank> way{pair.second};
    while (way.back() != pair.first) way.push_back(before[static_cast<size_t>(way.back())]);
    return {way.rbegin(), way.rend()};
  }

  uint32_t whole_blocks(uint32_t chunks) const { return (chunks + made_.chunks - 1) / made_.chunks * made_.chunks; }
  // In scratch that begins with the message's first block: of a chunk's number only its place in a block counts, which says its size and
  // its channel.
  Chunks placed(Chunks message) const {
    message.buffer = Buffer::scratch;
    message.first %= made_.chunks;
    return message;
  }

  // What is passed on lies behind the schedule's own scratch, in a part for each strand that takes the longest such message.
  void add_strands(uint32_t count) {
    out_.scratch = whole_blocks(made_.scratch) + room_ * count;
    out_.strands = made_.strands + count;
    out_.programs.clear();
    for (uint32_t channel = 0; channel < made_.channels; ++channel) {
      for (uint32_t strand = 0; strand < out_.strands; ++strand) {
        for (Rank rank = 0; rank < made_.ranks; ++rank)
          out_.programs.push_back(strand < made_.strands ? made_.program(rank, channel, strand) : Program{rank, channel, strand, {}});
      }
    }
  }

  void redirect(uint32_t channel) {
    const Routes& routes = routes_[channel];
    each_program(channel, [&](const Program& program) {
      for (const Step& step : program.steps) {
        for (uint32_t i = 0; i < step.to.count; ++i) {
          const auto found = routes.find({program.rank, made_.peer_table[step.to.first + i]});
          if (found == routes.end()) continue;
          out_.peer_table[step.to.first + i] = found->second.way[1];
          pass_on(channel, found->second, step.flow());
        }
        for (uint32_t i = 0; i < step.from.count; ++i) {
          const auto found = routes.find({made_.peer_table[step.from.first + i], program.rank});
          if (found != routes.end()) out_.peer_table[step.from.first + i] = found->second.way[found->second.way.size() - 2];
        }
      }
    });
  }

  void pass_on(uint32_t channel, const Route& route, const Chunks& flow) {
    Chunks message = placed(flow);
    message.first += whole_blocks(made_.scratch) + room_ * (route.strand - made_.strands);
    for (size_t at = 1; at + 1 < route.way.size(); ++at) {
      const auto peer = static_cast<uint32_t>(out_.peer_table.size());
      out_.peer_table.insert(out_.peer_table.end(), {route.way[at - 1], route.way[at + 1]});
      const size_t program = (size_t{channel} * out_.strands + route.strand) * static_cast<size_t>(made_.ranks);
      out_.programs[program + static_cast<size_t>(route.way[at])].steps.push_back({{peer, 1}, {}, message, {peer + 1, 1}});
    }
  }

  const Schedule& made_;
  std::set<Pair> missing_;
  Schedule out_;
  std::vector<Routes> routes_;  // [channel]
  uint32_t room_ = 0;           // chunks of a strand's part of scratch
};

}  // namespace

bool connected(int ranks, const RankPairs& missing) {
  const std::set<Pair> apart = both_ways(missing);
  std::vector<bool> known(static_cast<size_t>(ranks));
  std::deque<Rank> reached;
  const auto reach = [&](Rank rank) { known[static_cast<size_t>(rank)] = true, reached.push_back(rank); };
  if (ranks > 0) reach(0);
  for (; !reached.empty(); reached.pop_front()) {
    for (Rank next = 0; next < ranks; ++next) {
      if (!known[static_cast<size_t>(next)] && !apart.contains({reached.front(), next})) reach(next);
    }
  }
  return std::find(known.begin(), known.end(), false) == known.end();
}

Result<Schedule> relayed(const Schedule& made, const RankPairs& missing) {
  for (const auto& [a, b] : missing) {
    for (const Rank rank : {a, b}) {
      if (rank < 0 || rank >= made.ranks)
        return Error{Code::invalid_argument, fmt::format("a missing link of rank {} among {} ranks", rank, made.ranks)};
    }
  }
  if (missing.empty()) return made;
  return Relaying(made, both_ways(missing)).run();
}

}  // namespace gyre::schedule
