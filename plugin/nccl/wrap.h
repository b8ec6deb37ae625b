// NCCL's interface where there is a real NCCL: its communicators, its calls, and gyre before those that it may take
// over (wrap_offer.h, wrap_rules.h).
#pragma once
#include "base/config.h"
#include "plugin/nccl/table.h"

namespace gyre::plugin::nccl::wrap {

/// NCCL's functions, and gyre's before some: where nothing is to be taken over, only before those that make communicators, so that ranks
/// that would take over learn at once that this one does not.
Table wrapped_table(const Table& real, const Config&);

#define GYRE_FUNCTION(result, name, parameters, arguments) result name parameters noexcept;
// Those that are NCCL's as they are have no body.
NCCL_FUNCTIONS(GYRE_FUNCTION)  // NOLINT(readability-avoid-const-params-in-decls): NCCL's own
#undef GYRE_FUNCTION

}  // namespace gyre::plugin::nccl::wrap
