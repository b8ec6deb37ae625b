// The names that programs call: NCCL's, weak as in NCCL, so that a tool can put its own before them and call their twins. An NCCL that
// calls them is known by where the call returns to.
#include "plugin/abi/nccl_layout.h"
#include "plugin/nccl/table.h"

#define GYRE_SHOWN [[gnu::visibility("default")]]
#define GYRE_EXPORT(result, name, parameters, arguments)                                                                     \
  GYRE_SHOWN result p##name parameters { return gyre::plugin::nccl::table_for(__builtin_return_address(0)).name arguments; } \
  GYRE_SHOWN [[gnu::weak, gnu::alias("p" #name)]] result name parameters;

extern "C" {
NCCL_FUNCTIONS(GYRE_EXPORT)
/// Tells a copy of gyre that is named as NCCL is from NCCL.
GYRE_SHOWN extern const char gyre_nccl;
const char gyre_nccl = 1;
}
