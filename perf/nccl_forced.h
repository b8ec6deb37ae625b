// How NCCL is made to run one algorithm and protocol, by its environment, and how it says what it ran: NCCL_ALGO, NCCL_PROTO, and the lines
// of NCCL_DEBUG_SUBSYS=TUNING. Some releases fall back to another where they lack the one that is forced. Choices are "ring/ll128", as
// profiles have them (plugin/tuner_profile.h).
#pragma once
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/types.h"
#include "perf/run_command.h"
#include "plugin/tuner_words.h"

namespace gyre::perf {

/// NCCL's own choice: nothing is forced.
inline constexpr std::string_view nccls_own = plugin::tuner_nccls_own;

/// Those that some machine has for the collective, NCCL's own first.
std::vector<std::string> nccl_candidates(Collective);

/// The environment for a choice. No tuner is loaded, nor does gyre take anything over, so that NCCL's own is NCCL's. `told`: NCCL logs what
/// it runs, which takes it time.
Variables nccl_variables(std::string_view choice, bool told);

/// Error: {env} is a part of a word, where it would not be replaced.
Status check_env(const std::vector<std::string>& command);
/// The command with each word {env} replaced by `env`, and these: a launcher that leaves its environment behind starts that for each rank.
std::vector<std::string> with_env(const std::vector<std::string>& command, const Variables&);

/// What a log says that NCCL ran, by the collective's name, such as "all_reduce"; empty: it does not say.
std::map<std::string, std::set<std::string>> nccl_choices_in(std::string_view log);
/// The last warning, such as "Error : no algorithm/protocol available for function Broadcast"; empty: there is none.
std::string nccl_warning_in(std::string_view log);
/// "2.28.9+cuda13.0"; "unknown": the log does not say.
std::string nccl_version_in(std::string_view log);

}  // namespace gyre::perf
