// Which family runs a call: every candidate that this machine allows is priced and weighed, and the lightest taken. A pure function of what
// all ranks know, so that they choose alike; equal ones are decided by the order of families().
#pragma once
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "topo/algorithms.h"
#include "topo/cost.h"
#include "topo/direct_cost.h"
#include "topo/graph.h"

namespace gyre::topo {

struct Query {
  Collective collective = Collective::all_reduce;
  double block_bytes = 0;    ///< of a block (schedule/layout.h)
  size_t element_bytes = 1;  ///< of its elements: a message has at least one of each of its chunks
  int ranks = 1;
  Rank root = 0;
  Placement placement;
  uint32_t channels = 1;        ///< connections between two ranks: a schedule has no more channels
  uint32_t shape_channels = 0;  ///< of every candidate's shape; 0: one, and as many as there are connections for
  Costs costs;
  bool slots = true;  ///< what is sent inside a node lies in slots of each connection; not: in buffers that the kernel uses for all
  schedule::Cutting cutting;
  std::vector<LinkOverride> overrides;  ///< links that are slower, or missing and gone around by relays
  bool ordered = false;                 ///< candidates' sums are those of the canonical tree (schedule/canonical.h), or they are refused
  double partial_widths = 1;            ///< bytes of a partial sum's element in those of an input's
  bool plays = true;                    ///< candidates near the lightest are played
  bool packets = false;                 ///< ranks can leave packets of such a block for each other's GPUs
  bool mapped = false;                  ///< their kernels can reach each other's buffers
};

struct Candidate {
  std::string_view family;
  Shape shape;
  Price price;
  std::optional<double> measured;   ///< seconds
  std::optional<double> simulated;  ///< seconds of one call, where its price is near the lightest
  std::string refused;              ///< why it can't run; empty: it can
  // What is priced; in a CUDA graph it goes by messages.
  bool by_packets = false;
  bool mapped = false;  ///< by one kernel on each rank, on all ranks' buffers
};
/// Seconds that it takes: as measured, or simulated, where it was, and else its price.
inline double predicted(const Candidate& candidate) {
  return candidate.measured.value_or(candidate.simulated.value_or(candidate.price.seconds));
}

/// Seconds by which candidates are compared: the predicted time, but where ranks share processors and send by the kernel at least the work
/// on these and a share of the time on as many as are wanted (Graham, "Bounds on multiprocessing timing anomalies", 1969: the longest that
/// work takes which no processor leaves lying). Calls of what has a root follow each other without waiting, and the busiest rank sets
/// their pace: its work is added.
double weighed(const Query&, const Price&);
/// The same of its simulated time, where it has one; or as measured, of calls that followed each other: nothing is added.
double weighed(const Query&, const Candidate&);

struct Choice {
  std::vector<Candidate> candidates;  ///< the best first, the refused last

  /// Null: none can run.
  const Candidate* best() const { return candidates.empty() || !candidates.front().refused.empty() ? nullptr : &candidates.front(); }
  /// The best of a family; null: none can run.
  const Candidate* cheapest(std::string_view family) const;
};

/// Profiles that were made before: a communicator keeps one, so that a second choice of a collective costs microseconds.
class Profiles {
 public:
  /// Error: as profile(). `missing`: of the schedule whose messages go by relays there; error: as schedule::relayed(), or so many ranks
  /// that their schedules are not made for this.
  const Result<Profile>& of(std::string_view family, const Shape&, const Placement&, const schedule::RankPairs& missing = {});
  /// As topo::order().
  const Order& order_of(const Family&, const Shape&);
  /// As sampled_seconds() (topo/simulated.h).
  std::optional<double> simulated(const Query&, std::string_view family, const Shape&, double block_bytes);

 private:
  using Key = std::tuple<std::string, Collective, int, uint32_t, Rank, std::vector<int>, int, bool, schedule::RankPairs>;
  std::map<Key, Result<Profile>> known_;
  std::map<Key, Order> orders_;
  std::map<std::pair<Key, std::vector<double>>, std::optional<double>> simulated_;  // and by size and costs
};

/// A kernel on each rank that works on all ranks' buffers can stand for its schedules of one channel (schedule/direct.h).
bool can_be_mapped(std::string_view family, Collective);

Choice choose(const Query&, Profiles&);
/// A table of all candidates: predicted times, of what their prices are made, and weights, or why one is refused; before them the direct
/// forms.
std::string explain(const Query&, const Choice&, std::span<const DirectCandidate> = {});

/// What the published rule takes: below 1 MiB the tree if it is predicted under 0.8 of the ring; on several nodes of several ranks
/// hierarchical if it is predicted under 1.2 of the ring; else the best. Null: none can run.
const Candidate* rule_of_thumb(const Query&, const Choice&);

}  // namespace gyre::topo
