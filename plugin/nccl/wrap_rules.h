// Which calls gyre may take over from NCCL. Decided only by what is equal on all ranks: the options, of which the ranks have told each
// other, where all buffers lie, and the call.
#pragma once
#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "base/config.h"
#include "engine/arguments.h"

namespace gyre::plugin::nccl::wrap {

struct Rules {
  std::array<bool, collective_count> taken{};
  size_t least_bytes = 0;
  size_t most_bytes = SIZE_MAX;

  static Rules of(const Config&);
  /// Some calls can be taken over.
  bool any() const;
  /// One of each collective that is taken, as small as they come, and of the largest where there is such: what must have a plan.
  std::vector<engine::Call> examples() const;
  /// Why NCCL runs the call; empty: gyre may. `on_gpu`: the buffers of all ranks' calls are on GPUs.
  std::string_view why_not(const engine::Call&, int ranks, bool on_gpu) const;
};

/// What a rank says to the vote: its version of gyre, its options, where its buffers lie, how many copies of NCCL it has.
std::string ballot(const Config&, bool buffers_on_gpu, size_t nccls);
/// By rank. Why gyre takes nothing over, the same on all ranks; empty: they agree.
std::string objection(const std::vector<std::string>& ballots);

}  // namespace gyre::plugin::nccl::wrap
