// A profile's file (plugin/tuner_profile.h), of which each command writes its own part and leaves the others: what things cost, what
// NCCL is predicted to do best, and what it was measured to do best.
#pragma once
#include <functional>
#include <nlohmann/json.hpp>
#include <string>

#include "base/result.h"

namespace gyre::perf {

/// With all that it has, in its order; a file that does not exist has nothing. Error: it is no profile.
Result<nlohmann::ordered_json> read_profile(const std::string& file);
/// Reads it, and writes what `change` makes of it, while no other command does; a link is followed. Error: `change`'s, and then nothing is
/// written; or it is no profile, or can't be written.
Status change_profile(const std::string& file, const std::function<Status(nlohmann::ordered_json&)>& change);
/// Error: why it could not be changed, as far as it can be told before.
Status check_profile(const std::string& file);

/// Its "nccl"; null: it has none, or another version's, whose choices NCCL's tuner would refuse. Error: whatever else the tuner would
/// refuse.
Result<nlohmann::ordered_json> nccl_section(const nlohmann::ordered_json& profile, const std::string& file);

/// A collective's choices as they were measured, and how.
struct MeasuredChoices {
  int ranks_per_node = 1, nodes = 1;
  std::string collective;
  nlohmann::ordered_json choices, how;
};
/// Into the job of such a section, in place of the collective's choices there; the job's others stay.
void put_measured(nlohmann::ordered_json& section, const MeasuredChoices&);

/// Into a new section: what was measured, and the jobs of such a machine with other numbers of ranks on a node. `before`: nccl_section().
void keep_jobs(const nlohmann::ordered_json& before, nlohmann::ordered_json& section, int ranks_per_node);

}  // namespace gyre::perf
