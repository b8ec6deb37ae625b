// What this process would have gyre take over from NCCL: the collectives that GYRE_COLLECTIVES names, which may be none, or where that is
// not set what a profile gives gyre (GYRE_TUNER_FILE, plugin/tuner_profile.h). Ranks that offer other things take over nothing.
#pragma once
#include <span>
#include <string>

#include "base/config.h"
#include "plugin/nccl/wrap_rules.h"
#include "plugin/tuner_file.h"

namespace gyre::plugin::nccl::wrap {

struct Offer {
  Rules by_options;                    ///< of every communicator
  std::span<const TunerRule> profile;  ///< that decides in their place; empty: none does

  static Offer of(const Config&);
  /// Some calls can be taken over, of some communicator's.
  bool any() const { return !profile.empty() || by_options.any(); }
  /// Of a communicator of so many ranks, as many on each node; 0 nodes: they are not.
  Rules in_job(int ranks, int nodes) const;
};

/// GYRE_TUNER_FILE's, or none where GYRE_COLLECTIVES is set.
const TunerFile& file_that_decides(const Config&);
/// Why that can't be used; empty: it can, or there is none.
std::string why_no_profile(const Config&);

}  // namespace gyre::plugin::nccl::wrap
