// Our declarations of NCCL's interface beside those of an nccl.h, of whatever release: values, sizes and places, and how every function
// that it has passes its parameters. All is said when this is compiled. Not here: what nccl_device.h declares, which needs CUDA's compiler.
#include <limits.h>
#include <nccl.h>
#include <stddef.h>
#include <stdint.h>

#include <array>
#include <type_traits>

#define GYRE_SINCE(minor, patch) (NCCL_VERSION_CODE >= ((minor) <= 8 ? 2000 : 20000) + 100 * (minor) + (patch))

// From 2.30 on it is either a function or a macro.
#ifdef ncclResetDebugInit
#undef ncclResetDebugInit
#define GYRE_HAS_RESET false
#else
#define GYRE_HAS_RESET GYRE_SINCE(24, 0)
#endif
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
#define GYRE_PLACE(type, name) static_assert(offsetof(ours::type, name) == offsetof(::type, name), #name " lies elsewhere")
#define GYRE_FIELD(name) GYRE_PLACE(ncclConfig_t, name)
#define GYRE_COLLECTIVE_FIELD(name) GYRE_PLACE(ncclCollConfig_t, name)
#define GYRE_FUNCTION(name) static_assert(same<ours::name##_type, decltype(::name)>(), #name " takes other parameters")
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

static_assert(sizeof(ours::ncclUniqueId) == sizeof(::ncclUniqueId));
GYRE_VALUE(ncclInt8);
GYRE_VALUE(ncclUint8);
GYRE_VALUE(ncclInt32);
GYRE_VALUE(ncclUint32);
GYRE_VALUE(ncclInt64);
GYRE_VALUE(ncclUint64);
GYRE_VALUE(ncclFloat16);
GYRE_VALUE(ncclFloat32);
GYRE_VALUE(ncclFloat64);
GYRE_VALUE(ncclSum);
GYRE_VALUE(ncclProd);
GYRE_VALUE(ncclMax);
GYRE_VALUE(ncclMin);
GYRE_VALUE(ncclUnhandledCudaError);
GYRE_VALUE(ncclSystemError);
GYRE_VALUE(ncclInternalError);
GYRE_VALUE(ncclInvalidArgument);
GYRE_VALUE(ncclInvalidUsage);
GYRE_FUNCTION(ncclGetVersion);
GYRE_FUNCTION(ncclGetUniqueId);
GYRE_FUNCTION(ncclCommInitRank);
GYRE_FUNCTION(ncclCommInitAll);
GYRE_FUNCTION(ncclCommDestroy);
GYRE_FUNCTION(ncclGetErrorString);
GYRE_FUNCTION(ncclCommCount);
GYRE_FUNCTION(ncclCommCuDevice);
GYRE_FUNCTION(ncclCommUserRank);
GYRE_FUNCTION(ncclReduce);
GYRE_FUNCTION(ncclBcast);
GYRE_FUNCTION(ncclBroadcast);
GYRE_FUNCTION(ncclAllReduce);
GYRE_FUNCTION(ncclReduceScatter);
GYRE_FUNCTION(ncclAllGather);
GYRE_FUNCTION(ncclGroupStart);
GYRE_FUNCTION(ncclGroupEnd);

#if GYRE_SINCE(4, 0)
GYRE_FUNCTION(ncclCommGetAsyncError);
GYRE_FUNCTION(ncclCommAbort);
#endif

#if GYRE_SINCE(7, 0)
GYRE_FUNCTION(ncclSend);
GYRE_FUNCTION(ncclRecv);
#endif

#if GYRE_SINCE(10, 0)
GYRE_VALUE(ncclBfloat16);
GYRE_VALUE(ncclAvg);
#endif

#if GYRE_SINCE(11, 0)
GYRE_VALUE(ncclMaxRedOp);
GYRE_VALUE(ncclScalarDevice);
GYRE_VALUE(ncclScalarHostImmediate);
GYRE_FUNCTION(ncclRedOpCreatePreMulSum);
GYRE_FUNCTION(ncclRedOpDestroy);
#endif

#if GYRE_SINCE(13, 0)
GYRE_VALUE(ncclRemoteError);
GYRE_FUNCTION(ncclGetLastError);
#endif

#if GYRE_SINCE(14, 0)
GYRE_VALUE(ncclInProgress);
GYRE_FIELD(magic);
GYRE_FIELD(version);
GYRE_FIELD(blocking);
GYRE_FUNCTION(ncclCommInitRankConfig);
GYRE_FUNCTION(ncclCommFinalize);
#endif

#if GYRE_SINCE(17, 0)
GYRE_FIELD(cgaClusterSize);
GYRE_FIELD(minCTAs);
GYRE_FIELD(maxCTAs);
GYRE_FIELD(netName);
#endif

#if GYRE_SINCE(18, 0)
GYRE_FIELD(splitShare);
GYRE_FUNCTION(ncclCommSplit);
#endif

#if GYRE_SINCE(19, 0)
GYRE_FUNCTION(ncclMemAlloc);
GYRE_FUNCTION(ncclMemFree);
GYRE_FUNCTION(ncclCommRegister);
GYRE_FUNCTION(ncclCommDeregister);
#endif

#if GYRE_SINCE(22, 0)
static_assert(sizeof(ours::ncclSimInfo_t) == sizeof(::ncclSimInfo_t));
GYRE_PLACE(ncclSimInfo_t, estimatedTime);
GYRE_FUNCTION(ncclGroupSimulateEnd);
#endif

#if GYRE_SINCE(23, 0)
GYRE_FUNCTION(ncclCommInitRankScalable);
#endif

#if GYRE_SINCE(24, 0)
GYRE_VALUE(ncclFloat8e4m3);
GYRE_VALUE(ncclFloat8e5m2);
#endif

#if GYRE_SINCE(26, 0)
GYRE_FIELD(trafficClass);
#endif

#if GYRE_SINCE(27, 0)
GYRE_FIELD(commName);
GYRE_FIELD(collnetEnable);
GYRE_FIELD(CTAPolicy);
GYRE_FIELD(shrinkShare);
GYRE_FIELD(nvlsCTAs);
GYRE_FUNCTION(ncclCommShrink);
GYRE_FUNCTION(ncclCommWindowRegister);
GYRE_FUNCTION(ncclCommWindowDeregister);
#endif

#if GYRE_SINCE(28, 0)
GYRE_FIELD(nChannelsPerNetPeer);
GYRE_FIELD(nvlinkCentricSched);
GYRE_FUNCTION(ncclAlltoAll);
GYRE_FUNCTION(ncclGather);
GYRE_FUNCTION(ncclScatter);
#endif

#if GYRE_SINCE(28, 7)
GYRE_FUNCTION(ncclCommRevoke);
#endif

#if GYRE_SINCE(29, 0)
static_assert(sizeof(ours::ncclWaitSignalDesc_t) == sizeof(::ncclWaitSignalDesc_t));
GYRE_PLACE(ncclWaitSignalDesc_t, sigIdx);
GYRE_FIELD(graphUsageMode);
GYRE_FIELD(numRmaCtx);
GYRE_FUNCTION(ncclCommGrow);
GYRE_FUNCTION(ncclCommGetUniqueId);
GYRE_FUNCTION(ncclWinGetUserPtr);
GYRE_FUNCTION(ncclPutSignal);
GYRE_FUNCTION(ncclSignal);
GYRE_FUNCTION(ncclWaitSignal);
#endif

#if GYRE_SINCE(29, 7)
GYRE_VALUE(ncclStatGpuMemSuspend);
GYRE_VALUE(ncclStatGpuMemSuspended);
GYRE_VALUE(ncclStatGpuMemPersist);
GYRE_VALUE(ncclStatGpuMemTotal);
GYRE_FUNCTION(ncclCommSuspend);
GYRE_FUNCTION(ncclCommResume);
GYRE_FUNCTION(ncclCommMemStats);
#endif

#if GYRE_SINCE(30, 0)
GYRE_VALUE(ncclTimeout);
GYRE_FIELD(maxP2pPeers);
#endif

#if GYRE_SINCE(30, 4)
GYRE_FUNCTION(ncclParamBind);
GYRE_FUNCTION(ncclParamGetI8);
GYRE_FUNCTION(ncclParamGetI16);
GYRE_FUNCTION(ncclParamGetI32);
GYRE_FUNCTION(ncclParamGetI64);
GYRE_FUNCTION(ncclParamGetU8);
GYRE_FUNCTION(ncclParamGetU16);
GYRE_FUNCTION(ncclParamGetU32);
GYRE_FUNCTION(ncclParamGetU64);
GYRE_FUNCTION(ncclParamGetStr);
GYRE_FUNCTION(ncclParamGet);
GYRE_FUNCTION(ncclParamGetParameter);
GYRE_FUNCTION(ncclParamGetAllParameterKeys);
GYRE_FUNCTION(ncclParamDumpAll);
#endif

#if GYRE_SINCE(30, 5)
GYRE_FIELD(graphStreamOrdering);
#endif

#if GYRE_SINCE(31, 0)
GYRE_COLLECTIVE_FIELD(magic);
GYRE_COLLECTIVE_FIELD(version);
GYRE_COLLECTIVE_FIELD(ext);
GYRE_COLLECTIVE_FIELD(minCTAs);
GYRE_COLLECTIVE_FIELD(maxCTAs);
GYRE_COLLECTIVE_FIELD(nvlsCTAs);
GYRE_COLLECTIVE_FIELD(cgaClusterSize);
GYRE_COLLECTIVE_FIELD(algSelection);
GYRE_COLLECTIVE_FIELD(forceAlgSelection);
GYRE_COLLECTIVE_FIELD(CTAPolicy);
GYRE_COLLECTIVE_FIELD(userProfilerTag);
GYRE_FIELD(launchOrderImplicit);
GYRE_FIELD(numRmaSig);
GYRE_FIELD(rmaEagerInit);
GYRE_FIELD(hostCftMode);
GYRE_FUNCTION(ncclAllReduceConfig);
GYRE_FUNCTION(ncclBroadcastConfig);
GYRE_FUNCTION(ncclReduceConfig);
GYRE_FUNCTION(ncclAllGatherConfig);
GYRE_FUNCTION(ncclReduceScatterConfig);
GYRE_FUNCTION(ncclAlltoAllConfig);
GYRE_FUNCTION(ncclGatherConfig);
GYRE_FUNCTION(ncclScatterConfig);
#endif

#if GYRE_SINCE(32, 0)
static_assert(sizeof(ours::ncclEncryptionConfig_t) == sizeof(::ncclEncryptionConfig_t));
GYRE_PLACE(ncclEncryptionConfig_t, mode);
GYRE_PLACE(ncclEncryptionConfig_t, psk);
GYRE_COLLECTIVE_FIELD(launchCompletionEvent);
GYRE_FIELD(nvlsHostMode);
GYRE_FUNCTION(ncclSetEncryption);
#endif

#if GYRE_HAS_RESET
GYRE_FUNCTION(ncclResetDebugInit);
#endif

}  // namespace

int main() {}
