// Calls on GPU memory that gyre may run beside NCCL, alone or in a group. No rank waits for another, so that both engines are chosen
// between by what NCCL itself needs to be the same on all ranks, and by nothing else:
//
//   the rules (wrap_rules.h)      options and the call
//   its stream is being captured  NCCL's guide: it "must be uniform over all ranks participating in the launch"
//   its buffers are in a window   as for NCCL's own kernels for windows
//   the others of its group       of the same communicator, and collectives: NCCL orders and bundles these together, so that all ranks must
//                                 group them alike. They are all gyre's, or all NCCL's.
//
// Sends and receives of the same group are not: one rank may have them in the group of a collective, and another has not. They stay NCCL's,
// and come after the group's collectives, as NCCL itself puts them. What a rank can't give gyre, although the rules do, is its error.
//
// Order: gyre's calls are in the order of one stream of its own. Where the other engine had the communicator's last call, on whatever
// stream, the next one's stream first waits for it, by an event. What a graph runs that NCCL captured has no place in this order.
#pragma once
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "plugin/nccl/wrap_issue.h"

namespace gyre::plugin::nccl::wrap {

/// Why NCCL runs what the rules give to gyre, on all ranks; empty: gyre does.
Result<std::string_view> why_not_on_gpu(const Beside&, const Operation&);
/// Sets what a call on GPU memory needs. Error: this rank can't give it to gyre.
Status place_on_gpu(Operation&);

/// Those of a group, of any communicators.
class HeldOnGpu {
 public:
  bool empty() const { return held_.empty(); }
  void hold(Issued issued) { held_.push_back(std::move(issued)); }
  bool is_nccls(const Beside&) const;
  /// Some are of that communicator.
  bool has(const Beside&) const;
  /// All collectives of that communicator are NCCL's in this group. Those that were held.
  std::vector<Issued> leave_to_nccl(const std::shared_ptr<Beside>&);
  const std::vector<Issued>& calls() const { return held_; }

 private:
  std::vector<Issued> held_;
  std::vector<std::shared_ptr<Beside>> nccls_;  // kept, lest another one has the address of one that has ended
};

/// Gives them to their streams, after what NCCL has of their communicators.
Result<ncclResult_t> run_on_gpu(std::span<const Issued>);

}  // namespace gyre::plugin::nccl::wrap
