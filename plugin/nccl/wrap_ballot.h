// The vote of a communicator's ranks: gyre takes over calls where all of them offer the same (wrap_offer.h), and can.
#pragma once
#include <string>
#include <vector>

#include "base/config.h"

namespace gyre::plugin::nccl::wrap {

/// What a rank says: its version of gyre, its options and profile, where its buffers lie, how many copies of NCCL it has, and whether its
/// communicator blocks.
std::string ballot(const Config&, bool buffers_on_gpu, size_t nccls, bool blocks);
/// By rank. Why gyre takes nothing over, the same on all ranks; empty: they agree.
std::string objection(const std::vector<std::string>& ballots);

}  // namespace gyre::plugin::nccl::wrap
