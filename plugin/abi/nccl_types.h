/* What NCCL's plugin interfaces share: result codes, constants, and the callbacks that NCCL gives to a plugin. Our own declarations, with
 * NCCL's names and values, since no NCCL is needed to build a plugin for all of its versions; net_*_layout.h pin sizes and offsets.
 * Plain C, so that a C program can open a plugin with them. They must not know gyre. */
#pragma once
#include <stddef.h>
#include <stdint.h>

typedef enum {
  ncclSuccess = 0,
  ncclUnhandledCudaError = 1,
  ncclSystemError = 2,
  ncclInternalError = 3,
  ncclInvalidArgument = 4,
  ncclInvalidUsage = 5,
  ncclRemoteError = 6, /* 2.13; older releases pass the number on */
  ncclInProgress = 7,  /* never from a plugin */
  ncclTimeout = 8      /* 2.30 */
} ncclResult_t;

/* Kinds of memory; bits of ptrSupport. */
enum { NCCL_PTR_HOST = 0x1, NCCL_PTR_CUDA = 0x2, NCCL_PTR_DMABUF = 0x4 };

typedef enum {
  NCCL_LOG_NONE = 0,
  NCCL_LOG_VERSION = 1,
  NCCL_LOG_WARN = 2,
  NCCL_LOG_INFO = 3,
  NCCL_LOG_ABORT = 4,
  NCCL_LOG_TRACE = 5
} ncclDebugLogLevel;

/* Subsystems of a log line; bits of the logger's flags, where all bits mean all subsystems. */
enum {
  NCCL_INIT = 0x1,
  NCCL_COLL = 0x2,
  NCCL_P2P = 0x4,
  NCCL_SHM = 0x8,
  NCCL_NET = 0x10,
  NCCL_GRAPH = 0x20,
  NCCL_TUNING = 0x40,
  NCCL_ENV = 0x80,
  NCCL_ALLOC = 0x100,
  NCCL_CALL = 0x200,
  NCCL_PROXY = 0x400,
  NCCL_NVLS = 0x800,
  NCCL_BOOTSTRAP = 0x1000,
  NCCL_REG = 0x2000,
  NCCL_PROFILE = 0x4000,
  NCCL_RAS = 0x8000,
  NCCL_DESTROY = 0x10000,
  NCCL_ALLOC_HOST = 0x20000
};

/* Safe from any thread; filters by NCCL_DEBUG itself and ends the line itself. `file` is shown for warnings, `line` too. */
typedef void (*ncclDebugLogger_t)(ncclDebugLogLevel level, unsigned long flags, const char* file, int line, const char* format, ...);

/* Types of an event's call: the first writes *eHandle, the others read it. Nothing is written where no profiler is loaded. */
enum { ncclProfilerNetEventStart = 0, ncclProfilerNetEventStop = 1, ncclProfilerNetEventUpdate = 2, ncclProfilerNetEventUpdateAndStop = 3 };
typedef ncclResult_t (*ncclProfilerCallback_t)(void** eHandle, int type, void* pHandle, int64_t pluginId, void* extData);
