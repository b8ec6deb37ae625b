// The rest of NCCL's functions, by gyre alone: versions and errors, memory, and what gyre does not do, which says so.
#include <fmt/format.h>

#include "plugin/nccl/comm.h"
#include "plugin/nccl/config.h"
#include "plugin/nccl/cuda_driver.h"
#include "plugin/nccl/errors.h"
#include "plugin/nccl/table.h"
#include "transport/shared_heap.h"

namespace gyre::plugin::nccl {
namespace {

constexpr int nccl_version = 22809;  // of NCCL; what programs are built with today, which take their ways by it

ncclResult_t not_done(const char* name) noexcept {
  return guard(name, []() -> Status { return Error{Code::invalid_usage, "gyre does not do this where it stands alone (GYRE_NCCL)"}; });
}

}  // namespace

namespace stand_alone {

ncclResult_t ncclGetVersion(int* out) noexcept {
  return guard("ncclGetVersion", [&]() -> Status {
    if (out == nullptr) return Error{Code::invalid_argument, "there is no place for the answer: NULL"};
    *out = nccl_version;
    return {};
  });
}

const char* ncclGetErrorString(ncclResult_t result) noexcept {
  switch (result) {
    case ncclSuccess:
      return "no error";
    case ncclUnhandledCudaError:
      return "CUDA has failed (GYRE_LOG=info tells more)";
    case ncclSystemError:
      return "the system has failed (GYRE_LOG=info tells more)";
    case ncclInternalError:
      return "gyre has failed (GYRE_LOG=info tells more)";
    case ncclInvalidArgument:
      return "an argument is wrong";
    case ncclInvalidUsage:
      return "calls are used wrongly";
    case ncclRemoteError:
      return "another rank has failed or is gone";
    case ncclInProgress:
      return "in progress";
    case ncclTimeout:
      return "too late";
  }
  return "no result code of NCCL's";
}

const char* ncclGetLastError(ncclComm_t) noexcept { return last_error(); }

void ncclResetDebugInit() noexcept {}

// Where the program uses CUDA, its device's; else ranks of a host read and write such memory straight (transport::SharedHeap).
ncclResult_t ncclMemAlloc(void** memory, size_t bytes) noexcept {
  return guard("ncclMemAlloc", [&]() -> Status {
    if (memory == nullptr) return Error{Code::invalid_argument, "there is no place for the memory: NULL"};
    cuda::look(GYRE_TRY(checked_config()));
    *memory = cuda::present() ? GYRE_TRY(cuda::allocate(bytes)) : GYRE_TRY(transport::SharedHeap::of_process().allocate(bytes));
    return {};
  });
}
ncclResult_t ncclMemFree(void* memory) noexcept {
  if (memory == nullptr) return ncclSuccess;
  return guard("ncclMemFree",
               [&] { return cuda::on_gpu(memory) ? cuda::release(memory) : transport::SharedHeap::of_process().release(memory); });
}

// Host memory needs no registration here; NCCL's handle is null then, too.
ncclResult_t ncclCommRegister(const ncclComm_t comm, void* memory, size_t bytes, void** out) noexcept {
  return guard("ncclCommRegister", [&]() -> Status {
    GYRE_TRY(find_made(comm));
    if (memory == nullptr || out == nullptr || bytes == 0)
      return Error{Code::invalid_argument, fmt::format("{} bytes at {}, handle at {}", bytes, memory, fmt::ptr(out))};
    *out = nullptr;
    return {};
  });
}
ncclResult_t ncclCommDeregister(const ncclComm_t comm, void* registered) noexcept {
  return guard("ncclCommDeregister", [&]() -> Status {
    GYRE_TRY(find(comm));
    if (registered != nullptr) return Error{Code::invalid_argument, fmt::format("there is no registration {}", registered)};
    return {};
  });
}

// An NCCL that has no symmetric memory succeeds without a window, and programs that would like one go on.
ncclResult_t ncclCommWindowRegister(ncclComm_t comm, void* memory, size_t bytes, ncclWindow_t* window, int) noexcept {
  return guard("ncclCommWindowRegister", [&]() -> Status {
    GYRE_TRY(find_made(comm));
    if (window == nullptr) return Error{Code::invalid_argument, fmt::format("window is NULL, for {} bytes at {}", bytes, memory)};
    *window = nullptr;
    return {};
  });
}
ncclResult_t ncclCommWindowDeregister(ncclComm_t comm, ncclWindow_t window) noexcept {
  if (window == nullptr) return ncclSuccess;
  return guard("ncclCommWindowDeregister", [&]() -> Status {
    GYRE_TRY(find(comm));
    return Error{Code::invalid_argument, fmt::format("there is no window {}", fmt::ptr(window))};
  });
}

ncclResult_t ncclSetEncryption(const ncclEncryptionConfig_t* config) noexcept {
  return guard("ncclSetEncryption", [&] { return can_do(config); });
}

#define GYRE_NOT_DONE(name, ...) \
  ncclResult_t name(__VA_ARGS__) noexcept { return not_done(#name); }
GYRE_NOT_DONE(ncclWinGetUserPtr, ncclComm_t, ncclWindow_t, void**)
GYRE_NOT_DONE(ncclCommSuspend, ncclComm_t, int)
GYRE_NOT_DONE(ncclCommResume, ncclComm_t)
GYRE_NOT_DONE(ncclCommMemStats, ncclComm_t, ncclCommMemStat_t, uint64_t*)
GYRE_NOT_DONE(ncclCommGrow, ncclComm_t, int, const ncclUniqueId*, int, ncclComm_t*, ncclConfig_t*)
GYRE_NOT_DONE(ncclCommGetUniqueId, ncclComm_t, ncclUniqueId*)
GYRE_NOT_DONE(ncclCommQueryProperties, ncclComm_t, ncclCommProperties_t*)
GYRE_NOT_DONE(ncclPutSignal, const void*, size_t, ncclDataType_t, int, ncclWindow_t, size_t, int, int, unsigned, ncclComm_t, cudaStream_t)
GYRE_NOT_DONE(ncclSignal, int, int, int, unsigned, ncclComm_t, cudaStream_t)
GYRE_NOT_DONE(ncclWaitSignal, int, ncclWaitSignalDesc_t*, ncclComm_t, cudaStream_t)
GYRE_NOT_DONE(ncclParamBind, ncclParamHandle_t*, const char*)
GYRE_NOT_DONE(ncclParamGetI8, ncclParamHandle_t, int8_t*)
GYRE_NOT_DONE(ncclParamGetI16, ncclParamHandle_t, int16_t*)
GYRE_NOT_DONE(ncclParamGetI32, ncclParamHandle_t, int32_t*)
GYRE_NOT_DONE(ncclParamGetI64, ncclParamHandle_t, int64_t*)
GYRE_NOT_DONE(ncclParamGetU8, ncclParamHandle_t, uint8_t*)
GYRE_NOT_DONE(ncclParamGetU16, ncclParamHandle_t, uint16_t*)
GYRE_NOT_DONE(ncclParamGetU32, ncclParamHandle_t, uint32_t*)
GYRE_NOT_DONE(ncclParamGetU64, ncclParamHandle_t, uint64_t*)
GYRE_NOT_DONE(ncclParamGetStr, ncclParamHandle_t, const char**)
GYRE_NOT_DONE(ncclParamGet, ncclParamHandle_t, void*, int, int*)
GYRE_NOT_DONE(ncclParamGetParameter, const char*, const char**, int*)
GYRE_NOT_DONE(ncclParamGetAllParameterKeys, const char***, int*)
#undef GYRE_NOT_DONE
void ncclParamDumpAll() noexcept {}

}  // namespace stand_alone
}  // namespace gyre::plugin::nccl
