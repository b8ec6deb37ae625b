/* A call of each function that is newer than NCCL 2.28; one that is forgotten here does not compile. A program includes this once. */
#pragma once
#include "plugin/abi/nccl.h"

/* Which gyre alone does not do: an algorithm of NCCL's, and encryption. */
static const ncclCollConfig_t by_ring = {sizeof by_ring,
                                         NCCL_CONFIG_MAGIC,
                                         23200,
                                         NULL,
                                         NCCL_CONFIG_UNDEF_INT,
                                         NCCL_CONFIG_UNDEF_INT,
                                         NCCL_CONFIG_UNDEF_INT,
                                         NCCL_CONFIG_UNDEF_INT,
                                         "ring",
                                         1,
                                         NCCL_CONFIG_UNDEF_INT,
                                         0,
                                         NULL};
static const ncclEncryptionConfig_t by_key = {sizeof by_key, NCCL_CONFIG_MAGIC, 23200, NCCL_ENCRYPTION_MODE_PSK,
                                              "a key that is long enough for NCCL"};

#define NEW_CALLS(F)                                                                   \
  F(ncclCommRevoke, (NULL, 0))                                                         \
  F(ncclCommSuspend, (NULL, 1))                                                        \
  F(ncclCommResume, (NULL))                                                            \
  F(ncclCommMemStats, (NULL, ncclStatGpuMemTotal, NULL))                               \
  F(ncclCommGrow, (NULL, 2, NULL, 0, NULL, NULL))                                      \
  F(ncclCommGetUniqueId, (NULL, NULL))                                                 \
  F(ncclCommQueryProperties, (NULL, NULL))                                             \
  F(ncclWinGetUserPtr, (NULL, NULL, NULL))                                             \
  F(ncclPutSignal, (NULL, 0, ncclInt8, 0, NULL, 0, 0, 0, 0, NULL, NULL))               \
  F(ncclSignal, (0, 0, 0, 0, NULL, NULL))                                              \
  F(ncclWaitSignal, (0, NULL, NULL, NULL))                                             \
  F(ncclParamBind, (NULL, "NCCL_DEBUG"))                                               \
  F(ncclParamGetI8, (NULL, NULL))                                                      \
  F(ncclParamGetI16, (NULL, NULL))                                                     \
  F(ncclParamGetI32, (NULL, NULL))                                                     \
  F(ncclParamGetI64, (NULL, NULL))                                                     \
  F(ncclParamGetU8, (NULL, NULL))                                                      \
  F(ncclParamGetU16, (NULL, NULL))                                                     \
  F(ncclParamGetU32, (NULL, NULL))                                                     \
  F(ncclParamGetU64, (NULL, NULL))                                                     \
  F(ncclParamGetStr, (NULL, NULL))                                                     \
  F(ncclParamGet, (NULL, NULL, 0, NULL))                                               \
  F(ncclParamGetParameter, ("NCCL_DEBUG", NULL, NULL))                                 \
  F(ncclParamGetAllParameterKeys, (NULL, NULL))                                        \
  F(ncclAllReduceConfig, (NULL, NULL, 0, ncclInt8, ncclSum, NULL, NULL, &by_ring))     \
  F(ncclBroadcastConfig, (NULL, NULL, 0, ncclInt8, 0, NULL, NULL, &by_ring))           \
  F(ncclReduceConfig, (NULL, NULL, 0, ncclInt8, ncclSum, 0, NULL, NULL, &by_ring))     \
  F(ncclAllGatherConfig, (NULL, NULL, 0, ncclInt8, NULL, NULL, &by_ring))              \
  F(ncclReduceScatterConfig, (NULL, NULL, 0, ncclInt8, ncclSum, NULL, NULL, &by_ring)) \
  F(ncclAlltoAllConfig, (NULL, NULL, 0, ncclInt8, NULL, NULL, &by_ring))               \
  F(ncclGatherConfig, (NULL, NULL, 0, ncclInt8, 0, NULL, NULL, &by_ring))              \
  F(ncclScatterConfig, (NULL, NULL, 0, ncclInt8, 0, NULL, NULL, &by_ring))             \
  F(ncclSetEncryption, (&by_key))

#define NEW_CALL(name, arguments) \
  static ncclResult_t call_##name(void) { return name arguments; }
NEW_CALLS(NEW_CALL)
/* It answers nothing. */
static ncclResult_t call_ncclParamDumpAll(void) { return ncclParamDumpAll(), ncclInvalidUsage; }

#define NEW_ROW(result, name, parameters, arguments) {#name, call_##name},
static const struct {
  const char* name;
  ncclResult_t (*call)(void);
} new_calls[] = {NCCL_NEW_FUNCTIONS(NEW_ROW) NCCL_CONFIGURED_FUNCTIONS(NEW_ROW)};
enum { MANY_NEW_CALLS = sizeof new_calls / sizeof *new_calls };
