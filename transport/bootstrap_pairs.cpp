#include "transport/bootstrap_pairs.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace gyre::transport::bootstrap {
namespace {

using Calls = std::vector<std::optional<Call>>;

const Pair* pair_with(const Call& call, size_t peer) {
  for (const Pair& pair : call.pairs) {
    if (pair.peer == static_cast<Rank>(peer)) return &pair;
  }
  return nullptr;
}

// What `rank` waits for that `peer` has not begun, in words; empty: nothing.
std::string needs(const Calls& calls, size_t rank, size_t peer) {
  if (!calls[rank] || !calls[peer] || rank == peer) return {};
  const Call& mine = *calls[rank];
  const Call& theirs = *calls[peer];
  if (!mine.among_some()) {  // all ranks must come to this call
    const bool before = theirs.number < mine.number || (theirs.among_some() && theirs.number == mine.number);
    return before ? fmt::format("rank {}", peer) : "";
  }
  const Pair* own = pair_with(mine, peer);
  const Pair* other = pair_with(theirs, rank);
  if (own == nullptr) return {};
  if (own->awaited_receive > (other == nullptr ? 0 : other->sends))
    return fmt::format("message {} from rank {}", own->awaited_receive, peer);
  if (own->awaited_send > (other == nullptr ? 0 : other->receives))
    return fmt::format("rank {} to take message {}", peer, own->awaited_send);
  return {};
}

std::string where(const Call& call) {
  return call.among_some() ? fmt::format("an exchange before call {} ({})", call.number, call.text)
                           : fmt::format("call {} ({})", call.number, call.text);
}

class Search {
 public:
  explicit Search(const Calls& calls) : calls_(calls), states_(calls.size(), State::unseen) {}

  Circle run() {
    for (size_t rank = 0; rank < calls_.size(); ++rank) {
      if (states_[rank] == State::unseen && visit(rank)) return circle();
    }
    return {};
  }

 private:
  enum class State { unseen, on_path, left };

  // True when a circle was found, which is then the path from its rank `first_` on.
  bool visit(size_t rank) {
    states_[rank] = State::on_path;
    path_.push_back(rank);
    for (size_t peer = 0; peer < calls_.size(); ++peer) {
      if (states_[peer] == State::left || needs(calls_, rank, peer).empty()) continue;
      if (states_[peer] == State::on_path) first_ = peer;
      if (states_[peer] == State::on_path || visit(peer)) return true;
    }
    states_[rank] = State::left;
    path_.pop_back();
    return false;
  }
  Circle circle() {
    path_.erase(path_.begin(), std::find(path_.begin(), path_.end(), first_));
    std::string said;
    std::vector<Rank> ranks;
    for (size_t i = 0; i < path_.size(); ++i) {
      const size_t rank = path_[i];
      ranks.push_back(static_cast<Rank>(rank));
      said += fmt::format("{}rank {} waits in {} for {}", said.empty() ? "" : ", ", rank, where(*calls_[rank]),
                          needs(calls_, rank, path_[(i + 1) % path_.size()]));
    }
    return {std::move(ranks), "calls are in different orders: " + said};
  }

  const Calls& calls_;
  std::vector<State> states_;
  std::vector<size_t> path_;
  size_t first_ = 0;
};

}  // namespace

Circle find_circle(const Calls& calls) {
  // Calls of all ranks alone can't be in a circle.
  if (std::none_of(calls.begin(), calls.end(), [](const auto& call) { return call && call->among_some(); })) return {};
  return Search(calls).run();
}

}  // namespace gyre::transport::bootstrap
