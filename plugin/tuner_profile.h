// A profile: the JSON that gyre-perf writes of a machine. The engine takes from it what things cost (topo/constants.h), the tuner its
// "nccl",
//
//   "nccl": {"machine": "dgx_h100", "version": "0.1.0+4", "date": "2026-11-26", "origin": "predicted, not measured on GPUs",
//            "jobs": [{"ranks_per_node": 8, "nodes": 2, "choices": {"all_reduce": [[0, "tree/ll"], [3280000, "tree/ll128"]]}}]}
//
// where a choice holds from its number of bytes to where the next one begins, and a job's for as many nodes to where the next one with as
// many ranks on each begins, but for twice as many at most, and where it was measured and no other has more nodes, for just these: what is
// best changes with the number of nodes, and what NCCL chooses is never far from it. One node's hold for no other. A choice may be "nccl":
// its own; or "gyre", which is for libgyre-nccl.so, and for the tuner what stands behind it, as in [0, "gyre", "tree/ll"], else its own.
// Its own is also what is not named, and all where a profile only says what things cost. A job may say under "measured" how a collective's
// choices were, where they are not of the section's origin. All of it that counts is whole numbers: what they say is the same on every
// machine.
#pragma once
#include <set>

#include "plugin/tuner_rules.h"

namespace gyre::plugin {

/// Whether a text is meant to be one.
bool is_tuner_profile(std::string_view text);

/// Its thresholds as rules, no two of which fit the same call; NCCL's own choice has none but where a job has no other. Error: also of a
/// profile that another version of gyre wrote. "made_for" is not looked at, nor what was measured where: ranks on hosts with other
/// processors would answer differently, and hang.
Result<std::vector<TunerRule>> parse_tuner_profile(std::string_view text, std::string_view file);
/// Where its choices say they are from; for people.
struct ProfileOrigin {
  std::set<std::string> machines, nccl_versions;  ///< that they were measured on, and with
  std::string predicted_for;                      ///< the machine, where none were measured
};
/// Requires: it can be parsed.
ProfileOrigin origin_of_choices(std::string_view text);

}  // namespace gyre::plugin
