// Which calls gyre may take over from NCCL: those that GYRE_COLLECTIVES names, or else those of a communicator's job that a profile gives
// it (GYRE_TUNER_FILE, plugin/tuner_profile.h). Decided only by what is equal on all ranks: the options and the profile, of which the ranks
// have told each other, how many they are on how many hosts, where all buffers lie, and the call.
#pragma once
#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "base/config.h"
#include "engine/arguments.h"
#include "plugin/tuner_rules.h"

namespace gyre::plugin::nccl::wrap {

struct Rules {
  /// Count times element, both included.
  struct Sizes {
    size_t least, most;
  };

  /// By collective, rising: of which sizes calls are taken.
  std::array<std::vector<Sizes>, collective_count> taken;
  size_t least_bytes = 0;
  size_t most_bytes = SIZE_MAX;
  bool by_profile = false;
  std::vector<TunerRule> jobs;  ///< what a profile gives gyre, until in_job() has made `taken` of it

  static Rules of(const Config&);
  /// Of a communicator of so many ranks, as many on each node; 0 nodes: they are not.
  Rules in_job(int ranks, int nodes) const;
  /// Some calls can be taken over, of some communicator's.
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

/// Why a file that is to decide can't; empty: it can, or is not to.
std::string why_no_profile(const Config&);

/// What a rank says to the vote: its version of gyre, its options and profile, where its buffers lie, how many copies of NCCL it has.
std::string ballot(const Config&, bool buffers_on_gpu, size_t nccls);
/// By rank. Why gyre takes nothing over, the same on all ranks; empty: they agree.
std::string objection(const std::vector<std::string>& ballots);

}  // namespace gyre::plugin::nccl::wrap
