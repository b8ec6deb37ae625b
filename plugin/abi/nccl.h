/* NCCL's own interface, as programs call it: types, constants and every host function of releases 2.3 to 2.32, as one table. Our own
 * declarations, with NCCL's names and values, so that no NCCL is needed to build what stands in for it; nccl_layout.h pins sizes and
 * offsets. Of NCCL's interface for kernels only the host functions: what these pass is only known to them. Plain C; it must not know gyre.
 */
#pragma once
#include <limits.h>

#include "plugin/abi/nccl_types.h"

typedef struct ncclComm* ncclComm_t;
typedef struct ncclWindow_vidmem* ncclWindow_t;
typedef struct CUstream_st* cudaStream_t;
typedef struct CUevent_st* cudaEvent_t;
typedef struct ncclParamHandle* ncclParamHandle_t;         /* 2.30 */
typedef struct ncclCommProperties_v1 ncclCommProperties_t; /* 2.29, of the interface for kernels, as the next ones */
typedef struct ncclDevComm ncclDevComm_t;
typedef struct ncclDevCommRequirements ncclDevCommRequirements_t;
typedef struct ncclDevResourceRequirements ncclDevResourceRequirements_t;
typedef struct ncclLsaBarrierHandle ncclLsaBarrierHandle_t;
typedef struct ncclGinBarrierHandle ncclGinBarrierHandle_t;
typedef struct ncclLLA2AHandle ncclLLA2AHandle_t;
typedef struct ncclGinOutboxHandle ncclGinOutboxHandle_t;
typedef struct ncclGinInboxA2AHandle ncclGinInboxA2AHandle_t;
typedef struct {
  int nRanks;
  int rank; /* the caller's */
  int stride;
} ncclTeam_t;
typedef struct {
  void* mcBasePtr;
} ncclMultimemHandle_t;
typedef uint32_t ncclCftLeId;
typedef int ncclCftTeamMode_t; /* an enumeration */
typedef struct {
  char internal[128];
} ncclUniqueId;

typedef enum {
  ncclInt8 = 0,
  ncclUint8 = 1,
  ncclInt32 = 2,
  ncclUint32 = 3,
  ncclInt64 = 4,
  ncclUint64 = 5,
  ncclFloat16 = 6,
  ncclFloat32 = 7,
  ncclFloat64 = 8,
  ncclBfloat16 = 9,
  ncclFloat8e4m3 = 10, /* 2.24 */
  ncclFloat8e5m2 = 11,
  ncclNumTypes = 12
} ncclDataType_t;

typedef enum {
  ncclSum = 0,
  ncclProd = 1,
  ncclMax = 2,
  ncclMin = 3,
  ncclAvg = 4,
  ncclNumOps = 5,
  ncclMaxRedOp = 0x7fffffff /* those made by ncclRedOpCreatePreMulSum lie between */
} ncclRedOp_t;

typedef enum { ncclScalarDevice = 0, ncclScalarHostImmediate = 1 } ncclScalarResidence_t;
typedef enum {
  ncclStatGpuMemSuspend = 0,
  ncclStatGpuMemSuspended = 1,
  ncclStatGpuMemPersist = 2,
  ncclStatGpuMemTotal = 3
} ncclCommMemStat_t;

#define NCCL_CONFIG_UNDEF_INT INT_MIN
#define NCCL_CONFIG_MAGIC 0xcafebeefU
#define NCCL_SIM_INFO_MAGIC 0x74685283U
enum { NCCL_SPLIT_NOCOLOR = -1, NCCL_SHRINK_DEFAULT = 0, NCCL_SHRINK_ABORT = 1, NCCL_WIN_COLL_SYMMETRIC = 1 };

/* Programs bring the one of their release: `size` says how much there is, `version` which fields they knew of. */
typedef struct {
  size_t size;
  unsigned magic;
  unsigned version;
  int blocking;
  int cgaClusterSize; /* 2.17, as the next three */
  int minCTAs;
  int maxCTAs;
  const char* netName;
  int splitShare;       /* 2.18 */
  int trafficClass;     /* 2.26 */
  const char* commName; /* 2.27, as the next four */
  int collnetEnable;
  int CTAPolicy;
  int shrinkShare;
  int nvlsCTAs;
  int nChannelsPerNetPeer; /* 2.28, as the next */
  int nvlinkCentricSched;
  int graphUsageMode; /* 2.29, as the next */
  int numRmaCtx;
  int maxP2pPeers;         /* 2.30 */
  int graphStreamOrdering; /* 2.30.5 */
  int launchOrderImplicit; /* 2.31, as the next three */
  int numRmaSig;
  int rmaEagerInit;
  int hostCftMode;
  int nvlsHostMode; /* 2.32 */
} ncclConfig_t;

/* Of one collective, from 2.31 on; as above. */
typedef struct {
  size_t size;
  unsigned magic;
  unsigned version;
  void* ext; /* a list of options that are no NCCL's */
  int minCTAs;
  int maxCTAs;
  int nvlsCTAs;
  int cgaClusterSize;
  const char* algSelection;
  int forceAlgSelection; /* by default 1: what can't be as selected is an error */
  int CTAPolicy;
  uint64_t userProfilerTag;
  cudaEvent_t launchCompletionEvent; /* 2.32 */
} ncclCollConfig_t;

enum { NCCL_ENCRYPTION_MODE_NONE = 0, NCCL_ENCRYPTION_MODE_PSK = 1 };
/* Of the process's connections, 2.32; as above. */
typedef struct {
  size_t size;
  unsigned magic;
  unsigned version;
  int mode;
  const char* psk;
} ncclEncryptionConfig_t;

typedef struct {
  size_t size;
  unsigned magic;
  unsigned version;
  float estimatedTime; /* us */
} ncclSimInfo_t;

typedef struct {
  int opCnt;
  int peer;
  int sigIdx;
  int ctx;
} ncclWaitSignalDesc_t;

/* F(result, name, parameters, arguments) of every function, in the order of NCCL's header; each has a twin pncclX. */
#define NCCL_FUNCTIONS(F)      \
  NCCL_COMM_FUNCTIONS(F)       \
  NCCL_COLLECTIVE_FUNCTIONS(F) \
  NCCL_MEMORY_FUNCTIONS(F)     \
  NCCL_NEW_FUNCTIONS(F)        \
  NCCL_CONFIGURED_FUNCTIONS(F) \
  NCCL_DEVICE_FUNCTIONS(F)

#define NCCL_COMM_FUNCTIONS(F)                                                                                                   \
  F(ncclResult_t, ncclGetVersion, (int* version_code), (version_code))                                                           \
  F(ncclResult_t, ncclGetUniqueId, (ncclUniqueId * id), (id))                                                                    \
  F(ncclResult_t, ncclCommInitRankConfig, (ncclComm_t * comm, int ranks, ncclUniqueId id, int rank, ncclConfig_t* config),       \
    (comm, ranks, id, rank, config))                                                                                             \
  F(ncclResult_t, ncclCommInitRank, (ncclComm_t * comm, int ranks, ncclUniqueId id, int rank), (comm, ranks, id, rank))          \
  F(ncclResult_t, ncclCommInitAll, (ncclComm_t * comms, int ranks, const int* devices), (comms, ranks, devices))                 \
  F(ncclResult_t, ncclCommInitRankScalable,                                                                                      \
    (ncclComm_t * comm, int ranks, int rank, int ids_given, ncclUniqueId* ids, ncclConfig_t* config),                            \
    (comm, ranks, rank, ids_given, ids, config))                                                                                 \
  F(ncclResult_t, ncclCommFinalize, (ncclComm_t comm), (comm))                                                                   \
  F(ncclResult_t, ncclCommDestroy, (ncclComm_t comm), (comm))                                                                    \
  F(ncclResult_t, ncclCommAbort, (ncclComm_t comm), (comm))                                                                      \
  F(ncclResult_t, ncclCommSplit, (ncclComm_t comm, int color, int key, ncclComm_t* made, ncclConfig_t* config),                  \
    (comm, color, key, made, config))                                                                                            \
  F(ncclResult_t, ncclCommShrink, (ncclComm_t comm, int* without, int count, ncclComm_t* made, ncclConfig_t* config, int flags), \
    (comm, without, count, made, config, flags))                                                                                 \
  F(const char*, ncclGetErrorString, (ncclResult_t result), (result))                                                            \
  F(const char*, ncclGetLastError, (ncclComm_t comm), (comm))                                                                    \
  F(void, ncclResetDebugInit, (void), ())                                                                                        \
  F(ncclResult_t, ncclCommGetAsyncError, (ncclComm_t comm, ncclResult_t * error), (comm, error))                                 \
  F(ncclResult_t, ncclCommCount, (const ncclComm_t comm, int* count), (comm, count))                                             \
  F(ncclResult_t, ncclCommCuDevice, (const ncclComm_t comm, int* device), (comm, device))                                        \
  F(ncclResult_t, ncclCommUserRank, (const ncclComm_t comm, int* rank), (comm, rank))

#define NCCL_COLLECTIVE_FUNCTIONS(F)                                                                                                      \
  F(ncclResult_t, ncclRedOpCreatePreMulSum,                                                                                               \
    (ncclRedOp_t * op, void* scalar, ncclDataType_t type, ncclScalarResidence_t residence, ncclComm_t comm),                              \
    (op, scalar, type, residence, comm))                                                                                                  \
  F(ncclResult_t, ncclRedOpDestroy, (ncclRedOp_t op, ncclComm_t comm), (op, comm))                                                        \
  F(ncclResult_t, ncclReduce,                                                                                                             \
    (const void* input, void* output, size_t count, ncclDataType_t type, ncclRedOp_t op, int root, ncclComm_t comm, cudaStream_t stream), \
    (input, output, count, type, op, root, comm, stream))                                                                                 \
  F(ncclResult_t, ncclBcast, (void* buffer, size_t count, ncclDataType_t type, int root, ncclComm_t comm, cudaStream_t stream),           \
    (buffer, count, type, root, comm, stream))                                                                                            \
  F(ncclResult_t, ncclBroadcast,                                                                                                          \
    (const void* input, void* output, size_t count, ncclDataType_t type, int root, ncclComm_t comm, cudaStream_t stream),                 \
    (input, output, count, type, root, comm, stream))                                                                                     \
  F(ncclResult_t, ncclAllReduce,                                                                                                          \
    (const void* input, void* output, size_t count, ncclDataType_t type, ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream),           \
    (input, output, count, type, op, comm, stream))                                                                                       \
  F(ncclResult_t, ncclReduceScatter,                                                                                                      \
    (const void* input, void* output, size_t count, ncclDataType_t type, ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream),           \
    (input, output, count, type, op, comm, stream))                                                                                       \
  F(ncclResult_t, ncclAllGather,                                                                                                          \
    (const void* input, void* output, size_t count, ncclDataType_t type, ncclComm_t comm, cudaStream_t stream),                           \
    (input, output, count, type, comm, stream))                                                                                           \
  F(ncclResult_t, ncclAlltoAll,                                                                                                           \
    (const void* input, void* output, size_t count, ncclDataType_t type, ncclComm_t comm, cudaStream_t stream),                           \
    (input, output, count, type, comm, stream))                                                                                           \
  F(ncclResult_t, ncclGather,                                                                                                             \
    (const void* input, void* output, size_t count, ncclDataType_t type, int root, ncclComm_t comm, cudaStream_t stream),                 \
    (input, output, count, type, root, comm, stream))                                                                                     \
  F(ncclResult_t, ncclScatter,                                                                                                            \
    (const void* input, void* output, size_t count, ncclDataType_t type, int root, ncclComm_t comm, cudaStream_t stream),                 \
    (input, output, count, type, root, comm, stream))                                                                                     \
  F(ncclResult_t, ncclSend, (const void* input, size_t count, ncclDataType_t type, int peer, ncclComm_t comm, cudaStream_t stream),       \
    (input, count, type, peer, comm, stream))                                                                                             \
  F(ncclResult_t, ncclRecv, (void* output, size_t count, ncclDataType_t type, int peer, ncclComm_t comm, cudaStream_t stream),            \
    (output, count, type, peer, comm, stream))                                                                                            \
  F(ncclResult_t, ncclGroupStart, (void), ())                                                                                             \
  F(ncclResult_t, ncclGroupEnd, (void), ())                                                                                               \
  F(ncclResult_t, ncclGroupSimulateEnd, (ncclSimInfo_t * info), (info))

#define NCCL_MEMORY_FUNCTIONS(F)                                                                                                       \
  F(ncclResult_t, ncclMemAlloc, (void** memory, size_t bytes), (memory, bytes))                                                        \
  F(ncclResult_t, ncclMemFree, (void* memory), (memory))                                                                               \
  F(ncclResult_t, ncclCommRegister, (const ncclComm_t comm, void* memory, size_t bytes, void** handle), (comm, memory, bytes, handle)) \
  F(ncclResult_t, ncclCommDeregister, (const ncclComm_t comm, void* handle), (comm, handle))                                           \
  F(ncclResult_t, ncclCommWindowRegister, (ncclComm_t comm, void* memory, size_t bytes, ncclWindow_t* window, int flags),              \
    (comm, memory, bytes, window, flags))                                                                                              \
  F(ncclResult_t, ncclCommWindowDeregister, (ncclComm_t comm, ncclWindow_t window), (comm, window))

/* From 2.28.7 on. */
#define NCCL_NEW_FUNCTIONS(F)                                                                                                           \
  F(ncclResult_t, ncclCommRevoke, (ncclComm_t comm, int flags), (comm, flags))                                                          \
  F(ncclResult_t, ncclCommSuspend, (ncclComm_t comm, int flags), (comm, flags))                                                         \
  F(ncclResult_t, ncclCommResume, (ncclComm_t comm), (comm))                                                                            \
  F(ncclResult_t, ncclCommMemStats, (ncclComm_t comm, ncclCommMemStat_t stat, uint64_t * value), (comm, stat, value))                   \
  F(ncclResult_t, ncclCommGrow, (ncclComm_t comm, int ranks, const ncclUniqueId* id, int rank, ncclComm_t* made, ncclConfig_t* config), \
    (comm, ranks, id, rank, made, config))                                                                                              \
  F(ncclResult_t, ncclCommGetUniqueId, (ncclComm_t comm, ncclUniqueId * id), (comm, id))                                                \
  F(ncclResult_t, ncclCommQueryProperties, (ncclComm_t comm, ncclCommProperties_t * properties), (comm, properties))                    \
  F(ncclResult_t, ncclWinGetUserPtr, (ncclComm_t comm, ncclWindow_t window, void** memory), (comm, window, memory))                     \
  F(ncclResult_t, ncclPutSignal,                                                                                                        \
    (const void* input, size_t count, ncclDataType_t type, int peer, ncclWindow_t window, size_t offset, int signal, int context,       \
     unsigned flags, ncclComm_t comm, cudaStream_t stream),                                                                             \
    (input, count, type, peer, window, offset, signal, context, flags, comm, stream))                                                   \
  F(ncclResult_t, ncclSignal, (int peer, int signal, int context, unsigned flags, ncclComm_t comm, cudaStream_t stream),                \
    (peer, signal, context, flags, comm, stream))                                                                                       \
  F(ncclResult_t, ncclWaitSignal, (int count, ncclWaitSignalDesc_t* signals, ncclComm_t comm, cudaStream_t stream),                     \
    (count, signals, comm, stream))                                                                                                     \
  F(ncclResult_t, ncclParamBind, (ncclParamHandle_t * handle, const char* key), (handle, key))                                          \
  F(ncclResult_t, ncclParamGetI8, (ncclParamHandle_t handle, int8_t * value), (handle, value))                                          \
  F(ncclResult_t, ncclParamGetI16, (ncclParamHandle_t handle, int16_t * value), (handle, value))                                        \
  F(ncclResult_t, ncclParamGetI32, (ncclParamHandle_t handle, int32_t * value), (handle, value))                                        \
  F(ncclResult_t, ncclParamGetI64, (ncclParamHandle_t handle, int64_t * value), (handle, value))                                        \
  F(ncclResult_t, ncclParamGetU8, (ncclParamHandle_t handle, uint8_t * value), (handle, value))                                         \
  F(ncclResult_t, ncclParamGetU16, (ncclParamHandle_t handle, uint16_t * value), (handle, value))                                       \
  F(ncclResult_t, ncclParamGetU32, (ncclParamHandle_t handle, uint32_t * value), (handle, value))                                       \
  F(ncclResult_t, ncclParamGetU64, (ncclParamHandle_t handle, uint64_t * value), (handle, value))                                       \
  F(ncclResult_t, ncclParamGetStr, (ncclParamHandle_t handle, const char** value), (handle, value))                                     \
  F(ncclResult_t, ncclParamGet, (ncclParamHandle_t handle, void* value, int most, int* length), (handle, value, most, length))          \
  F(ncclResult_t, ncclParamGetParameter, (const char* key, const char** value, int* length), (key, value, length))                      \
  F(ncclResult_t, ncclParamGetAllParameterKeys, (const char*** keys, int* length), (keys, length))                                      \
  F(void, ncclParamDumpAll, (void), ())

/* From 2.31 on: collectives with a configuration of their own, and from 2.32 on the encryption of connections. */
#define NCCL_CONFIGURED_FUNCTIONS(F)                                                                                                     \
  F(ncclResult_t, ncclAllReduceConfig,                                                                                                   \
    (const void* input, void* output, size_t count, ncclDataType_t type, ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream,           \
     const ncclCollConfig_t* config),                                                                                                    \
    (input, output, count, type, op, comm, stream, config))                                                                              \
  F(ncclResult_t, ncclBroadcastConfig,                                                                                                   \
    (const void* input, void* output, size_t count, ncclDataType_t type, int root, ncclComm_t comm, cudaStream_t stream,                 \
     const ncclCollConfig_t* config),                                                                                                    \
    (input, output, count, type, root, comm, stream, config))                                                                            \
  F(ncclResult_t, ncclReduceConfig,                                                                                                      \
    (const void* input, void* output, size_t count, ncclDataType_t type, ncclRedOp_t op, int root, ncclComm_t comm, cudaStream_t stream, \
     const ncclCollConfig_t* config),                                                                                                    \
    (input, output, count, type, op, root, comm, stream, config))                                                                        \
  F(ncclResult_t, ncclAllGatherConfig,                                                                                                   \
    (const void* input, void* output, size_t count, ncclDataType_t type, ncclComm_t comm, cudaStream_t stream,                           \
     const ncclCollConfig_t* config),                                                                                                    \
    (input, output, count, type, comm, stream, config))                                                                                  \
  F(ncclResult_t, ncclReduceScatterConfig,                                                                                               \
    (const void* input, void* output, size_t count, ncclDataType_t type, ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream,           \
     const ncclCollConfig_t* config),                                                                                                    \
    (input, output, count, type, op, comm, stream, config))                                                                              \
  F(ncclResult_t, ncclAlltoAllConfig,                                                                                                    \
    (const void* input, void* output, size_t count, ncclDataType_t type, ncclComm_t comm, cudaStream_t stream,                           \
     const ncclCollConfig_t* config),                                                                                                    \
    (input, output, count, type, comm, stream, config))                                                                                  \
  F(ncclResult_t, ncclGatherConfig,                                                                                                      \
    (const void* input, void* output, size_t count, ncclDataType_t type, int root, ncclComm_t comm, cudaStream_t stream,                 \
     const ncclCollConfig_t* config),                                                                                                    \
    (input, output, count, type, root, comm, stream, config))                                                                            \
  F(ncclResult_t, ncclScatterConfig,                                                                                                     \
    (const void* input, void* output, size_t count, ncclDataType_t type, int root, ncclComm_t comm, cudaStream_t stream,                 \
     const ncclCollConfig_t* config),                                                                                                    \
    (input, output, count, type, root, comm, stream, config))                                                                            \
  F(ncclResult_t, ncclSetEncryption, (const ncclEncryptionConfig_t* config), (config))

/* Of NCCL's interface for kernels, from 2.28 on, which nccl_device.h declares. */
#define NCCL_DEVICE_FUNCTIONS(F)                                                                                                           \
  F(ncclResult_t, ncclDevCommCreate, (ncclComm_t comm, const ncclDevCommRequirements_t* requirements, ncclDevComm_t* made),                \
    (comm, requirements, made))                                                                                                            \
  F(ncclResult_t, ncclDevCommDestroy, (ncclComm_t comm, const ncclDevComm_t* made), (comm, made))                                          \
  F(ncclTeam_t, ncclTeamWorld, (ncclComm_t comm), (comm))                                                                                  \
  F(ncclTeam_t, ncclTeamLsa, (ncclComm_t comm), (comm))                                                                                    \
  F(ncclTeam_t, ncclTeamRail, (ncclComm_t comm), (comm))                                                                                   \
  F(int, ncclTeamRankToWorld, (ncclComm_t comm, ncclTeam_t team, int rank), (comm, team, rank))                                            \
  F(int, ncclTeamRankToLsa, (ncclComm_t comm, ncclTeam_t team, int rank), (comm, team, rank))                                              \
  F(ncclResult_t, ncclLsaBarrierCreateRequirement,                                                                                         \
    (ncclTeam_t team, int barriers, ncclLsaBarrierHandle_t* handle, ncclDevResourceRequirements_t* requirements),                          \
    (team, barriers, handle, requirements))                                                                                                \
  F(int, ncclLLA2ACalcSlots, (int most_elements, int element_size), (most_elements, element_size))                                         \
  F(ncclResult_t, ncclLLA2ACreateRequirement,                                                                                              \
    (int blocks, int slots, ncclLLA2AHandle_t* handle, ncclDevResourceRequirements_t* requirements),                                       \
    (blocks, slots, handle, requirements))                                                                                                 \
  F(ncclResult_t, ncclGinBarrierCreateRequirement,                                                                                         \
    (ncclComm_t comm, ncclTeam_t team, int barriers, ncclGinBarrierHandle_t* handle, ncclDevResourceRequirements_t* requirements),         \
    (comm, team, barriers, handle, requirements))                                                                                          \
  F(ncclResult_t, ncclGetLsaMultimemDevicePointer, (ncclWindow_t window, size_t offset, void** memory), (window, offset, memory))          \
  F(ncclResult_t, ncclGetMultimemDevicePointer, (ncclWindow_t window, size_t offset, ncclMultimemHandle_t handle, void** memory),          \
    (window, offset, handle, memory))                                                                                                      \
  F(ncclResult_t, ncclGetLsaDevicePointer, (ncclWindow_t window, size_t offset, int rank, void** memory), (window, offset, rank, memory))  \
  F(ncclResult_t, ncclGetPeerDevicePointer, (ncclWindow_t window, size_t offset, int peer, void** memory), (window, offset, peer, memory)) \
  F(ncclResult_t, ncclGinOutboxCreateRequirement,                                                                                          \
    (int blocks, int size_log2, ncclGinOutboxHandle_t* handle, ncclDevResourceRequirements_t* requirements),                               \
    (blocks, size_log2, handle, requirements))                                                                                             \
  F(ncclResult_t, ncclGinInboxA2ACreateRequirement,                                                                                        \
    (ncclTeam_t peers, int blocks, int size_log2, ncclGinInboxA2AHandle_t* handle, ncclDevResourceRequirements_t* requirements),           \
    (peers, blocks, size_log2, handle, requirements))                                                                                      \
  F(ncclTeam_t, ncclTeamCft, (ncclComm_t comm, ncclCftTeamMode_t mode), (comm, mode))                                                      \
  F(ncclTeam_t, ncclTeamCftMultimem, (ncclComm_t comm), (comm))                                                                            \
  F(ncclResult_t, ncclGetMultimemDeviceLeInfo, (ncclWindow_t window, size_t offset, ncclCftLeId * id, size_t * id_offset),                 \
    (window, offset, id, id_offset))                                                                                                       \
  F(ncclResult_t, ncclGetCftDeviceLeInfo,                                                                                                  \
    (ncclWindow_t window, size_t offset, int peer, ncclTeam_t team, ncclCftLeId* id, size_t* id_offset),                                   \
    (window, offset, peer, team, id, id_offset))                                                                                           \
  F(ncclResult_t, ncclGetPeerDeviceLeInfo, (ncclWindow_t window, size_t offset, int peer, ncclCftLeId* id, size_t* id_offset),             \
    (window, offset, peer, id, id_offset))

#ifndef NCCL_TYPES_ONLY
#ifdef __cplusplus
extern "C" {
#endif
#define NCCL_DECLARE(result, name, parameters, arguments) \
  result name parameters;                                 \
  result p##name parameters;
NCCL_FUNCTIONS(NCCL_DECLARE)
#undef NCCL_DECLARE
#ifdef __cplusplus
}
#endif
#endif
