// What stands in the table where the real NCCL of this machine has no such function.
#pragma once
#include <type_traits>

#include "plugin/nccl/table.h"
#include "plugin/net_log.h"

namespace gyre::plugin::nccl {

template <auto slot>
struct Missing;
template <class R, class... A, R (*Table::*slot)(A...)>
struct Missing<slot> {
  static inline const char* name = "";
  static R call(A...) {
    report(name, "the NCCL of this machine is too old to have it", __FILE__, __LINE__);
    if constexpr (std::is_same_v<R, ncclResult_t>)
      return ncclInvalidUsage;
    else if constexpr (std::is_same_v<R, const char*>)
      return "";
    else
      return R();
  }
};

template <auto slot>
bool has(const Table& table) {
  return table.*slot != &Missing<slot>::call;
}

}  // namespace gyre::plugin::nccl
