// Our declarations of NCCL's interface beside those of the NCCL that is installed: values, sizes and places, and how every function that
// both have passes its parameters. All is said when this is compiled.
#include <limits.h>
#include <nccl.h>
#include <stddef.h>
#include <stdint.h>

#include <array>
#include <type_traits>

#undef NCCL_CONFIG_UNDEF_INT
#undef NCCL_SPLIT_NOCOLOR
#undef NCCL_SHRINK_DEFAULT
#undef NCCL_SHRINK_ABORT
#undef NCCL_WIN_COLL_SYMMETRIC
#define NCCL_TYPES_ONLY
namespace ours {
#include "plugin/abi/nccl.h"
#define GYRE_TYPE(result, name, parameters, arguments) using name##_type = result parameters;
NCCL_FUNCTIONS(GYRE_TYPE)
}  // namespace ours

namespace {

/// A parameter or a result as the calling convention sees it.
struct Passed {
  size_t bytes;
  bool pointer, in_memory;
  bool operator==(const Passed&) const = default;
};
template <class T>
constexpr Passed passed() {
  if constexpr (std::is_void_v<T>)
    return {0, false, false};
  else
    return {sizeof(T), std::is_pointer_v<T>, std::is_class_v<T>};
}
template <class F>
struct Shape;
template <class R, class... A>
struct Shape<R(A...)> {
  static constexpr std::array<Passed, 1 + sizeof...(A)> value{passed<R>(), passed<A>()...};
};
template <class F, class G>
constexpr bool same() {
  if constexpr (Shape<F>::value.size() == Shape<G>::value.size())
    return Shape<F>::value == Shape<G>::value;
  else
    return false;
}

#define GYRE_VALUE(name) static_assert(static_cast<int>(ours::name) == static_cast<int>(::name), #name " has another value")
GYRE_VALUE(ncclInt8);
GYRE_VALUE(ncclUint8);
GYRE_VALUE(ncclInt32);
GYRE_VALUE(ncclUint32);
GYRE_VALUE(ncclInt64);
GYRE_VALUE(ncclUint64);
GYRE_VALUE(ncclFloat16);
GYRE_VALUE(ncclFloat32);
GYRE_VALUE(ncclFloat64);
GYRE_VALUE(ncclBfloat16);
GYRE_VALUE(ncclSum);
GYRE_VALUE(ncclProd);
GYRE_VALUE(ncclMax);
GYRE_VALUE(ncclMin);
GYRE_VALUE(ncclAvg);
GYRE_VALUE(ncclMaxRedOp);
GYRE_VALUE(ncclScalarDevice);
GYRE_VALUE(ncclScalarHostImmediate);
GYRE_VALUE(ncclUnhandledCudaError);
GYRE_VALUE(ncclRemoteError);
GYRE_VALUE(ncclInProgress);
static_assert(sizeof(ours::ncclUniqueId) == sizeof(::ncclUniqueId) && sizeof(ours::ncclSimInfo_t) == sizeof(::ncclSimInfo_t));

#define GYRE_FIELD(name) static_assert(offsetof(ours::ncclConfig_t, name) == offsetof(::ncclConfig_t, name), #name " lies elsewhere")
GYRE_FIELD(magic);
GYRE_FIELD(version);
GYRE_FIELD(blocking);
GYRE_FIELD(cgaClusterSize);
GYRE_FIELD(minCTAs);
GYRE_FIELD(maxCTAs);
GYRE_FIELD(netName);
GYRE_FIELD(splitShare);

#if NCCL_VERSION_CODE >= 22800
GYRE_VALUE(ncclFloat8e4m3);
GYRE_VALUE(ncclFloat8e5m2);
GYRE_FIELD(trafficClass);
GYRE_FIELD(commName);
GYRE_FIELD(collnetEnable);
GYRE_FIELD(CTAPolicy);
GYRE_FIELD(shrinkShare);
GYRE_FIELD(nvlsCTAs);
GYRE_FIELD(nChannelsPerNetPeer);
GYRE_FIELD(nvlinkCentricSched);
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
#define GYRE_FUNCTION(result, name, parameters, arguments) \
  static_assert(same<ours::name##_type, decltype(::name)>(), #name " takes other parameters");
NCCL_COMM_FUNCTIONS(GYRE_FUNCTION)
NCCL_COLLECTIVE_FUNCTIONS(GYRE_FUNCTION)
NCCL_MEMORY_FUNCTIONS(GYRE_FUNCTION)
#endif

}  // namespace

int main() {}
