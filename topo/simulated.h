// What a candidate takes on the simulator, which plays every message that a price only counts. A pure function of what all ranks know, as
// prices are, and computed like these.
#pragma once
#include "topo/select.h"

namespace gyre::topo {

/// Steps and messages of a call of such blocks, all slices together: at most, counted as if all ranks were the busiest.
double events(const Query&, const Profile&, double block_bytes);
/// Of one call, cut as it is priced. The shape is one that the family has; links are as the query's costs say.
Result<double> simulated_seconds(const Query&, std::string_view family, const Shape&, double block_bytes);
/// The same while a call waits for its choice: of many rounds only the first are played, after which each takes as long. Nothing: these
/// have too many events, or too many ranks, or can't be played.
std::optional<double> sampled_seconds(const Query&, const Profile&, std::string_view family, const Shape&, double block_bytes);

}  // namespace gyre::topo
