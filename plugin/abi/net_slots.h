/* The functions in the slots of NCCL's net plugin tables, versions 5 to 12. A type's suffix is the table version from which on the slot has
 * that form; getProperties has another one in each version and stands in the table itself. Parameters' names are NCCL's.
 * Plain C; they must not know gyre. */
#pragma once
#include "plugin/abi/net_properties.h"

typedef ncclResult_t (*ncclNetInit_v5_fn)(ncclDebugLogger_t logFunction);
typedef ncclResult_t (*ncclNetInit_v10_fn)(ncclDebugLogger_t logFunction, ncclProfilerCallback_t profFunction);
typedef ncclResult_t (*ncclNetInit_v11_fn)(void** ctx, uint64_t commId, ncclNetCommConfig_v11_t* config, ncclDebugLogger_t logFunction,
                                           ncclProfilerCallback_t profFunction);
typedef ncclResult_t (*ncclNetDevices_v5_fn)(int* ndev);
typedef ncclResult_t (*ncclNetListen_v5_fn)(int dev, void* handle, void** listenComm);
typedef ncclResult_t (*ncclNetListen_v11_fn)(void* ctx, int dev, void* handle, void** listenComm);

/* connect and accept: *comm left NULL means that NCCL calls again. */
typedef ncclResult_t (*ncclNetConnect_v5_fn)(int dev, void* handle, void** sendComm);
typedef ncclResult_t (*ncclNetConnect_v7_fn)(int dev, void* handle, void** sendComm, ncclNetDeviceHandle_v7_t** sendDevComm);
typedef ncclResult_t (*ncclNetConnect_v10_fn)(int dev, ncclNetCommConfig_v10_t* config, void* handle, void** sendComm,
                                              ncclNetDeviceHandle_v10_t** sendDevComm);
typedef ncclResult_t (*ncclNetConnect_v11_fn)(void* ctx, int dev, void* handle, void** sendComm, ncclNetDeviceHandle_v11_t** sendDevComm);
typedef ncclResult_t (*ncclNetAccept_v5_fn)(void* listenComm, void** recvComm);
typedef ncclResult_t (*ncclNetAccept_v7_fn)(void* listenComm, void** recvComm, ncclNetDeviceHandle_v7_t** recvDevComm);

typedef ncclResult_t (*ncclNetRegMr_v5_fn)(void* comm, void* data, int size, int type, void** mhandle);
typedef ncclResult_t (*ncclNetRegMr_v8_fn)(void* comm, void* data, size_t size, int type, void** mhandle);
typedef ncclResult_t (*ncclNetRegMrDmaBuf_v6_fn)(void* comm, void* data, size_t size, int type, uint64_t offset, int fd, void** mhandle);
typedef ncclResult_t (*ncclNetDeregMr_v5_fn)(void* comm, void* mhandle);

/* isend, irecv: *request left NULL means that NCCL tries again. */
typedef ncclResult_t (*ncclNetIsend_v5_fn)(void* sendComm, void* data, int size, int tag, void* mhandle, void** request);
typedef ncclResult_t (*ncclNetIsend_v9_fn)(void* sendComm, void* data, size_t size, int tag, void* mhandle, void** request);
typedef ncclResult_t (*ncclNetIsend_v10_fn)(void* sendComm, void* data, size_t size, int tag, void* mhandle, void* phandle, void** request);
typedef ncclResult_t (*ncclNetIrecv_v5_fn)(void* recvComm, int n, void** data, int* sizes, int* tags, void** mhandles, void** request);
typedef ncclResult_t (*ncclNetIrecv_v9_fn)(void* recvComm, int n, void** data, size_t* sizes, int* tags, void** mhandles, void** request);
typedef ncclResult_t (*ncclNetIrecv_v10_fn)(void* recvComm, int n, void** data, size_t* sizes, int* tags, void** mhandles, void** phandles,
                                            void** request);
typedef ncclResult_t (*ncclNetIflush_v5_fn)(void* recvComm, int n, void** data, int* sizes, void** mhandles, void** request);
typedef ncclResult_t (*ncclNetTest_v5_fn)(void* request, int* done, int* sizes);
typedef ncclResult_t (*ncclNetClose_v5_fn)(void* comm);

typedef ncclResult_t (*ncclNetGetDeviceMr_v7_fn)(void* comm, void* mhandle, void** dptr_mhandle);
typedef ncclResult_t (*ncclNetIrecvConsumed_v7_fn)(void* recvComm, int n, void* request);
typedef ncclResult_t (*ncclNetMakeVDevice_v9_fn)(int* d, ncclNetVDeviceProps_v9_t* props);
typedef ncclResult_t (*ncclNetMakeVDevice_v12_fn)(int* d, ncclNetVDeviceProps_v12_t* props);
typedef ncclResult_t (*ncclNetFinalize_v11_fn)(void* ctx);
typedef ncclResult_t (*ncclNetSetNetAttr_v11_fn)(void* ctx, ncclNetAttr_v11_t* attr);
