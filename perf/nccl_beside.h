// gyre beside NCCL as one more choice of a trial: how a command comes to run it, and how its log proves that it did. A call that gyre
// leaves to NCCL, for any reason, would be timed as gyre's, so that what it does not say it has not run.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/types.h"
#include "perf/run_command.h"
#include "plugin/tuner_words.h"

namespace gyre::perf {

using plugin::gyre_beside;  ///< its name among choices

/// The environment in which `library`, libgyre-nccl.so, takes over the collective, of any size, and says so; as nccl_variables() else.
Variables beside_variables(const std::string& library, Collective, bool told);

/// Error: who ran one of these sizes in gyre's place and why, or that it does not say. `times`: by nccl-tests' sizes, of so many ranks.
Status gyre_ran(std::string_view log, Collective, int ranks, const std::map<uint64_t, double>& times);

}  // namespace gyre::perf
