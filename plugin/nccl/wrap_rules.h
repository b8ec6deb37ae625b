// Which of a communicator's calls gyre may take over from NCCL. Decided only by what is equal on all ranks: what they offer (wrap_offer.h),
// how many they are on how many hosts, where all buffers lie, and the call.
#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "engine/arguments.h"

namespace gyre::plugin::nccl::wrap {

struct Rules {
  /// Count times element, both included.
  struct Sizes {
    size_t least = 0, most = SIZE_MAX;

    bool any() const { return least <= most; }
  };

  /// By collective, rising: of which sizes calls are taken.
  std::array<std::vector<Sizes>, collective_count> taken;
  Sizes limits;             ///< GYRE_MIN_BYTES and GYRE_MAX_BYTES, which `taken` is within
  bool by_profile = false;  ///< else by GYRE_COLLECTIVES

  /// Some calls can be taken over.
  bool any() const;
  /// Of each collective and range of sizes that is taken one as small as they come, and one of the largest where there is such: what must
  /// have a plan.
  std::vector<engine::Call> examples(int ranks) const;
  /// Why NCCL runs the call; empty: gyre may. `on_gpu`: the buffers of all ranks' calls are on GPUs.
  std::string_view why_not(const engine::Call&, int ranks, bool on_gpu) const;
  std::string_view decided_by() const { return by_profile ? "the profile" : "GYRE_COLLECTIVES"; }
  /// Those of which some are taken, in the table's order, however they were written.
  std::string collectives() const;
};

}  // namespace gyre::plugin::nccl::wrap
