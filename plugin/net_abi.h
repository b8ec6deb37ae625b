// The slots of the newest table, which the older ones share or adapt to, and the tables' symbols: all that the .so shows.
#pragma once
#include "plugin/abi/net_table.h"

#define GYRE_EXPORTED __attribute__((visibility("default")))

extern "C" {
extern const GYRE_EXPORTED ncclNet_v5_t ncclNetPlugin_v5;
extern const GYRE_EXPORTED ncclNet_v6_t ncclNetPlugin_v6;
extern const GYRE_EXPORTED ncclNet_v7_t ncclNetPlugin_v7;
extern const GYRE_EXPORTED ncclNet_v8_t ncclNetPlugin_v8;
extern const GYRE_EXPORTED ncclNet_v9_t ncclNetPlugin_v9;
extern const GYRE_EXPORTED ncclNet_v10_t ncclNetPlugin_v10;
extern const GYRE_EXPORTED ncclNet_v11_t ncclNetPlugin_v11;
extern const GYRE_EXPORTED ncclNet_v12_t ncclNetPlugin_v12;
}

#undef GYRE_EXPORTED

namespace gyre::plugin {

inline constexpr const char* net_name = "gyre";  ///< what NCCL_NET asks for

namespace newest {

ncclResult_t init(void** ctx, uint64_t commId, ncclNetCommConfig_v12_t* config, ncclDebugLogger_t logger, ncclProfilerCallback_t);
ncclResult_t devices(int* ndev);
ncclResult_t listen(void* ctx, int dev, void* handle, void** listenComm);
ncclResult_t connect(void* ctx, int dev, void* handle, void** sendComm, ncclNetDeviceHandle_v12_t**);
ncclResult_t accept(void* listenComm, void** recvComm, ncclNetDeviceHandle_v12_t**);
ncclResult_t reg_mr(void* comm, void* data, size_t size, int type, void** mhandle);
ncclResult_t reg_mr_dma_buf(void* comm, void* data, size_t size, int type, uint64_t offset, int fd, void** mhandle);
ncclResult_t dereg_mr(void* comm, void* mhandle);
ncclResult_t isend(void* sendComm, void* data, size_t size, int tag, void* mhandle, void* phandle, void** request);
ncclResult_t irecv(void* recvComm, int n, void** data, size_t* sizes, int* tags, void** mhandles, void** phandles, void** request);
ncclResult_t iflush(void* recvComm, int n, void** data, int* sizes, void** mhandles, void** request);
ncclResult_t test(void* request, int* done, int* sizes);
ncclResult_t close_comm(void* comm);
ncclResult_t close_listen(void* listenComm);
ncclResult_t finalize(void* ctx);
ncclResult_t set_net_attr(void* ctx, ncclNetAttr_v12_t* attr);

}  // namespace newest
}  // namespace gyre::plugin
