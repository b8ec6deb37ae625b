// The functions behind the names that libgyre-nccl.so exports: NCCL's own where there is a real one, with gyre's before some (wrap.h), else
// gyre's, which stand alone. Chosen at the first call, for the whole process but the NCCLs in it: what one of them calls is its own.
#pragma once
#include "base/config.h"
#include "plugin/abi/nccl.h"

namespace gyre::plugin::nccl {

struct Table {
// NOLINTNEXTLINE(bugprone-macro-parentheses): a name and a list of parameters, not values
#define GYRE_SLOT(result, name, parameters, arguments) result(*name) parameters;
  NCCL_FUNCTIONS(GYRE_SLOT)
#undef GYRE_SLOT
};

/// For a call that returns to that address.
const Table& table_for(const void* caller) noexcept;
/// The options; error: one of them is wrong, or names an NCCL that can't be used.
Result<Config> checked_config();

/// The whole interface by gyre alone.
namespace stand_alone {
#define GYRE_FUNCTION(result, name, parameters, arguments) result name parameters noexcept;
NCCL_FUNCTIONS(GYRE_FUNCTION)  // NOLINT(readability-avoid-const-params-in-decls): NCCL's own
#undef GYRE_FUNCTION
}  // namespace stand_alone

}  // namespace gyre::plugin::nccl
