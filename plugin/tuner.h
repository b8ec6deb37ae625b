// A communicator's choices for NCCL: what GYRE_TUNER_FILE says of it, and else what NCCL chooses itself. The answer depends on nothing but
// the file, the communicator's size and the call, since ranks that choose differently hang.
#pragma once
#include <span>

#include "plugin/tuner_index.h"

namespace gyre::plugin {

struct TunerCall {
  ncclFunc_t collective;
  uint64_t bytes;
  int64_t operations;                   ///< fused in this launch
  int64_t registered = TunerRule::any;  ///< 1: both buffers are; any: not known
};

/// What each algorithm and protocol is predicted to cost, in microseconds; below 0: not available. [algorithm][protocol].
struct CostTable {
  float* costs;
  int algorithms, protocols;

  /// Null where there is no such entry, or it is not available.
  float* available(const TunerRule& rule) const {
    if (rule.algorithm >= algorithms || rule.protocol >= protocols) return nullptr;
    float* cost = costs + static_cast<ptrdiff_t>(rule.algorithm) * protocols + rule.protocol;
    return *cost >= 0 ? cost : nullptr;
  }
};

class Tuner {
 public:
  /// Of a communicator of so many ranks on so many nodes; any: not known, and rules that name a number are left out. Channels stay NCCL's
  /// where it would take a number that it does not have.
  Tuner(std::span<const TunerRule> rules, int64_t ranks, int64_t nodes);

  /// The first rule that fits the call and is available; null: NCCL's own choice. Takes no memory, no lock, never fails; looks at 84
  /// rules at most, however many there are.
  const TunerRule* choose(const TunerCall&, const CostTable&) const noexcept;
  size_t rules() const { return rules_.size(); }

 private:
  std::vector<TunerRule> rules_;
  TunerIndex index_;  ///< of them
};

/// Whether a profile has a communicator's job, in which a Tuner has no choice that is not NCCL's own.
bool all_nccls_own(std::span<const TunerRule> rules, int64_t ranks, int64_t nodes);
/// Those by which a profile gives a communicator's calls to gyre; rising, of each collective. Only a job of as many nodes: what was faster
/// on two need not be on more, and what NCCL chooses is never far from its best.
std::vector<TunerRule> rules_beside(std::span<const TunerRule> rules, int64_t ranks, int64_t nodes);
/// Why none of a profile's rules are for a communicator.
std::string why_none(std::span<const TunerRule> rules, int64_t ranks, int64_t nodes);

}  // namespace gyre::plugin
