// What gyre predicts for NCCL's rings and trees on GPUs: its own prices (topo/cost.h) of its own ring, and of a tree on NCCL's edges,
// with a protocol's flags on the bytes and its hop in the latency. All channels count as one, through all NICs of a node at a time. What
// all algorithms take alike, such as the launch of a kernel, is left out, so times are only good beside each other. Not measured on GPUs.
#pragma once
#include <map>
#include <optional>

#include "topo/cost.h"
#include "topo/nccl/constants.h"

namespace gyre::topo::nccl {

/// As many ranks on each node.
struct Job {
  int ranks = 1, nodes = 1;
};

/// The collectives that NCCL has rings for; trees are for the first.
inline constexpr std::array<Collective, 5> collectives{Collective::all_reduce, Collective::reduce_scatter, Collective::all_gather,
                                                       Collective::broadcast, Collective::reduce};
/// Whether NCCL has this for the collective, on such a machine.
bool has(const Machine&, Collective, const Entry&);

/// The schedule whose edges are those of NCCL's trees: a chain inside a node, and between nodes two binary trees with half of the data
/// each; an all-reduce.
schedule::Schedule tree_of_chains(const Job&);

class Model {
 public:
  /// Error: ranks that don't fill nodes alike, or a count that topo/profile.h can't make.
  static Result<Model> of(const ModelConstants&, const Machine&, const Job&);

  /// Of the larger of a rank's input and output, as NCCL counts; nothing: NCCL has no such.
  std::optional<double> seconds(Collective, const Entry&, uint64_t bytes) const;

 private:
  Model(const Machine& machine, const Job& job) : machine_(machine), job_(job) {}

  Machine machine_;
  Job job_;
  std::map<Collective, Profile> rings_;
  Profile tree_;
  std::array<Costs, protocols> costs_;
  std::array<double, protocols> slot_bytes_{};  ///< of all channels
};

}  // namespace gyre::topo::nccl
