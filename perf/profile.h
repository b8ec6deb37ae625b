// A profile's file (plugin/tuner_profile.h), of which each command writes its own part and leaves the others: what things cost, what
// NCCL is predicted to do best, and what it was measured to do best.
#pragma once
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "base/result.h"

namespace gyre::perf {

/// With all that it has, in its order; a file that does not exist has nothing. Error: it is no profile.
Result<nlohmann::ordered_json> read_profile(const std::string& file);
/// Reads it, and writes what `change` makes of it, while no other command does; a link is followed. Error: `change`'s, and then nothing is
/// written; or it is no profile, or can't be written.
Status change_profile(const std::string& file, const std::function<Status(nlohmann::ordered_json&)>& change);
/// Error: why it could not be changed, as far as it can be told before.
Status check_profile(const std::string& file);

/// Of what was measured.
constexpr std::string_view measured_origin = "measured: the jobs say how";

struct NcclSection {
  nlohmann::ordered_json json;  ///< null: there is none, or nothing of it holds
  std::string said;             ///< of what another version has made: what of it stays; empty: all does
};
/// Its "nccl" as this version's: another's, which NCCL's tuner would refuse, as far as it was measured of NCCL alone. Error: whatever else
/// the tuner would refuse.
Result<NcclSection> nccl_section(const nlohmann::ordered_json& profile, const std::string& file);

/// A collective's choices as they were measured, and how.
struct MeasuredChoices {
  int ranks_per_node = 1, nodes = 1;
  std::string collective;
  nlohmann::ordered_json choices, how;
};
/// Into the job of such a section, in place of the collective's choices there; the job's others stay.
void put_measured(nlohmann::ordered_json& section, const MeasuredChoices&);

/// Into a new section: what was measured, and the jobs of such a machine with other numbers of ranks on a node. `before`: nccl_section()'s.
void keep_jobs(const nlohmann::ordered_json& before, nlohmann::ordered_json& section, int ranks_per_node);

}  // namespace gyre::perf
