#include "topo/nccl/model.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "schedule/fuse.h"
#include "schedule/layout.h"
#include "topo/tree.h"

namespace gyre::topo::nccl {
namespace {

Costs costs_of(const Machine& machine, const WireLines& lines) {
  const double overhead = lines.line_bytes / lines.data_bytes;
  Costs out;
  for (schedule::LinkClass& link : out.link) link.alpha = lines.hop;
  out.link[inside].alpha += machine.link_latency;
  out.link[between].alpha += machine.network_latency;
  out.link[inside].beta = overhead / machine.link_rate;
  out.link[between].beta = overhead / machine.network_rate;
  out.rank.gamma = 1 / machine.reduce_rate;
  return out;
}

// Of a connection's buffer, NCCL_STEPS; half of them are filled while the others are on their way.
constexpr uint32_t steps = 8;

// NCCL cuts smaller than its buffers demand where that overlaps more: of such cuts, each of twice as many pieces as the one before, the
// best.
double best_cut(const Profile& profile, const Costs& costs, double block_bytes, double slot_bytes) {
  const double message = block_bytes / profile.chunks * profile.longest_message;
  constexpr double most = 1 << 24;  // pieces; more is a slot of a few bytes, and no other choice
  const auto fewest = static_cast<uint32_t>(std::clamp(std::ceil(message / slot_bytes), 1.0, most));
  double least = 0;
  for (uint32_t times = 1; times <= 64; times *= 2) {
    schedule::Cut cut;
    cut.slices = std::min(schedule::slices_under_way(steps), fewest * times);
    cut.rounds = (fewest * times + cut.slices - 1) / cut.slices;
    const double seconds = price(profile, costs, block_bytes, cut, steps).seconds;
    if (times == 1 || seconds < least) least = seconds;
  }
  return least;
}

}  // namespace

bool has(const Machine& machine, Collective collective, const Entry& entry) {
  if (entry.protocol == Protocol::ll128 && !machine.ll128) return false;
  return entry.algorithm == Algorithm::ring || collective == Collective::all_reduce;
}

schedule::Schedule tree_of_chains(const Job& job) {
  const Shape nodes{Collective::all_reduce, job.nodes, 1, 0, {}};
  const Shape all{Collective::all_reduce, job.ranks, 1, 0, {}};
  const auto chains = equal_chains(job.nodes, job.ranks / job.nodes);
  const std::array trees{with_chains(binary_tree(nodes, false), chains), with_chains(binary_tree(nodes, true), chains)};
  return along_trees("nccl_tree", all, trees);
}

Result<Model> Model::of(const ModelConstants& constants, const Machine& machine, const Job& job) {
  if (job.nodes < 1 || job.ranks < job.nodes || job.ranks % job.nodes != 0)
    return Error{Code::invalid_argument, fmt::format("{} ranks can't be spread over {} nodes evenly", job.ranks, job.nodes)};
  Model out(machine, job);
  const Placement placement{job.nodes == 1 ? 0 : job.ranks / job.nodes};
  for (const Collective collective : collectives) {
    const Shape shape{collective, job.ranks, 1, 0, {}};
    out.rings_.emplace(collective, GYRE_TRY(profile("ring", shape, placement)));
  }
  out.tree_ = profile(schedule::fuse(tree_of_chains(job)), placement);
  for (size_t p = 0; p < protocols; ++p) {
    out.costs_[p] = costs_of(machine, constants.lines[p]);
    out.slot_bytes_[p] = constants.lines[p].slot_bytes * machine.channels(job.nodes).run;
  }
  return out;
}

std::optional<double> Model::seconds(Collective collective, const Entry& entry, uint64_t bytes) const {
  const auto ring = rings_.find(collective);
  if (ring == rings_.end() || !has(machine_, collective, entry)) return std::nullopt;
  const schedule::Layout layout{collective, job_.ranks, 0, 1};
  const double block = static_cast<double>(bytes) / std::max(layout.input_blocks(), layout.output_blocks());
  const auto protocol = static_cast<size_t>(entry.protocol);
  const Profile& of = entry.algorithm == Algorithm::ring ? ring->second : tree_;
  return best_cut(of, costs_[protocol], block, slot_bytes_[protocol]);
}

}  // namespace gyre::topo::nccl
