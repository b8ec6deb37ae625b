// The job whose ranks take samples: how samples name it (samples.h), and what can run in it.
#pragma once
#include <vector>

#include "engine/communicator.h"
#include "perf/samples.h"

namespace gyre::perf {

/// This job's ranks, nodes, links and processors, in a sample without algorithm, size and times. Called by all ranks. Error: ranks are on
/// nodes, or joined, as no sample says.
Result<Sample> sample_of_job(engine::Communicator&, const Config&);

/// All that the engine may choose for the collective of such a sample; each has its algorithm and grid.
Result<std::vector<Sample>> candidates(const Sample&);
/// What has the engine run that one.
engine::Preference preference(const Sample&);

}  // namespace gyre::perf
