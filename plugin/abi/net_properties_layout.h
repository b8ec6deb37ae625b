/* Sizes and offsets of what NCCL's net plugin tables take and fill, on LP64, as measured on NCCL's own releases. A test includes this from
 * C and from C++. */
#pragma once
#include <assert.h>
#include <stddef.h>

#include "plugin/abi/net_properties.h"

#define GYRE_SIZE(type, bytes) static_assert(sizeof(type) == (bytes), #type " has another size than NCCL's")
#define GYRE_AT(type, field, bytes) static_assert(offsetof(type, field) == (bytes), #type "'s " #field " is not where NCCL has it")

GYRE_SIZE(ncclResult_t, 4);
GYRE_SIZE(ncclDebugLogLevel, 4);
GYRE_SIZE(ncclNetDeviceType, 4);

GYRE_SIZE(ncclNetDeviceHandle_v7_t, 32);
GYRE_SIZE(ncclNetDeviceHandle_v8_t, 32);
GYRE_SIZE(ncclNetDeviceHandle_v9_t, 32);
GYRE_SIZE(ncclNetDeviceHandle_v10_t, 32);
GYRE_SIZE(ncclNetDeviceHandle_v11_t, 32);
GYRE_SIZE(ncclNetDeviceHandle_v12_t, 32);
GYRE_AT(ncclNetDeviceHandle_v7_t, netDeviceType, 0);
GYRE_AT(ncclNetDeviceHandle_v7_t, netDeviceVersion, 4);
GYRE_AT(ncclNetDeviceHandle_v7_t, handle, 8);
GYRE_AT(ncclNetDeviceHandle_v7_t, size, 16);
GYRE_AT(ncclNetDeviceHandle_v7_t, needsProxyProgress, 24);

GYRE_SIZE(ncclNetVDeviceProps_v9_t, 20);
GYRE_SIZE(ncclNetVDeviceProps_v10_t, 20);
GYRE_SIZE(ncclNetVDeviceProps_v11_t, 20);
GYRE_SIZE(ncclNetVDeviceProps_v12_t, 36);
static_assert(offsetof(ncclNetVDeviceProps_v9_t, devs) == 4 && offsetof(ncclNetVDeviceProps_v12_t, devs) == 4,
              "the devices follow their number");

GYRE_SIZE(ncclNetCommConfig_v10_t, 4);
GYRE_SIZE(ncclNetCommConfig_v11_t, 4);
GYRE_SIZE(ncclNetCommConfig_v12_t, 4);
GYRE_SIZE(ncclNetCommAttr_v11_t, 16);
GYRE_SIZE(ncclNetAttr_v11_t, 44);
GYRE_SIZE(ncclNetCommAttr_v12_t, 16);
GYRE_SIZE(ncclNetAttr_v12_t, 44);
GYRE_AT(ncclNetCommAttr_v11_t, maxConcurrentPeers, 0);
GYRE_AT(ncclNetCommAttr_v11_t, minConcurrentPeers, 4);
GYRE_AT(ncclNetCommAttr_v11_t, maxFlowsPerPeer, 8);
GYRE_AT(ncclNetCommAttr_v11_t, minFlowsPerPeer, 12);
GYRE_AT(ncclNetAttr_v11_t, sendCommAttr, 0);
GYRE_AT(ncclNetAttr_v11_t, recvCommAttr, 16);
GYRE_AT(ncclNetAttr_v11_t, op, 32);
GYRE_AT(ncclNetAttr_v11_t, algo, 36);
GYRE_AT(ncclNetAttr_v11_t, proto, 40);

GYRE_SIZE(ncclNetProperties_v5_t, 48);
GYRE_AT(ncclNetProperties_v5_t, name, 0);
GYRE_AT(ncclNetProperties_v5_t, pciPath, 8);
GYRE_AT(ncclNetProperties_v5_t, guid, 16);
GYRE_AT(ncclNetProperties_v5_t, ptrSupport, 24);
GYRE_AT(ncclNetProperties_v5_t, speed, 28);
GYRE_AT(ncclNetProperties_v5_t, port, 32);
GYRE_AT(ncclNetProperties_v5_t, latency, 36);
GYRE_AT(ncclNetProperties_v5_t, maxComms, 40);
GYRE_AT(ncclNetProperties_v5_t, maxRecvs, 44);

GYRE_SIZE(ncclNetProperties_v6_t, 48);
GYRE_AT(ncclNetProperties_v6_t, name, 0);
GYRE_AT(ncclNetProperties_v6_t, pciPath, 8);
GYRE_AT(ncclNetProperties_v6_t, guid, 16);
GYRE_AT(ncclNetProperties_v6_t, ptrSupport, 24);
GYRE_AT(ncclNetProperties_v6_t, speed, 28);
GYRE_AT(ncclNetProperties_v6_t, port, 32);
GYRE_AT(ncclNetProperties_v6_t, latency, 36);
GYRE_AT(ncclNetProperties_v6_t, maxComms, 40);
GYRE_AT(ncclNetProperties_v6_t, maxRecvs, 44);

GYRE_SIZE(ncclNetProperties_v7_t, 56);
GYRE_AT(ncclNetProperties_v7_t, name, 0);
GYRE_AT(ncclNetProperties_v7_t, pciPath, 8);
GYRE_AT(ncclNetProperties_v7_t, guid, 16);
GYRE_AT(ncclNetProperties_v7_t, ptrSupport, 24);
GYRE_AT(ncclNetProperties_v7_t, speed, 28);
GYRE_AT(ncclNetProperties_v7_t, port, 32);
GYRE_AT(ncclNetProperties_v7_t, latency, 36);
GYRE_AT(ncclNetProperties_v7_t, maxComms, 40);
GYRE_AT(ncclNetProperties_v7_t, maxRecvs, 44);
GYRE_AT(ncclNetProperties_v7_t, netDeviceType, 48);
GYRE_AT(ncclNetProperties_v7_t, netDeviceVersion, 52);

GYRE_SIZE(ncclNetProperties_v8_t, 64);
GYRE_AT(ncclNetProperties_v8_t, name, 0);
GYRE_AT(ncclNetProperties_v8_t, pciPath, 8);
GYRE_AT(ncclNetProperties_v8_t, guid, 16);
GYRE_AT(ncclNetProperties_v8_t, ptrSupport, 24);
GYRE_AT(ncclNetProperties_v8_t, regIsGlobal, 28);
GYRE_AT(ncclNetProperties_v8_t, speed, 32);
GYRE_AT(ncclNetProperties_v8_t, port, 36);
GYRE_AT(ncclNetProperties_v8_t, latency, 40);
GYRE_AT(ncclNetProperties_v8_t, maxComms, 44);
GYRE_AT(ncclNetProperties_v8_t, maxRecvs, 48);
GYRE_AT(ncclNetProperties_v8_t, netDeviceType, 52);
GYRE_AT(ncclNetProperties_v8_t, netDeviceVersion, 56);

GYRE_SIZE(ncclNetProperties_v9_t, 104);
GYRE_AT(ncclNetProperties_v9_t, name, 0);
GYRE_AT(ncclNetProperties_v9_t, pciPath, 8);
GYRE_AT(ncclNetProperties_v9_t, guid, 16);
GYRE_AT(ncclNetProperties_v9_t, ptrSupport, 24);
GYRE_AT(ncclNetProperties_v9_t, regIsGlobal, 28);
GYRE_AT(ncclNetProperties_v9_t, forceFlush, 32);
GYRE_AT(ncclNetProperties_v9_t, speed, 36);
GYRE_AT(ncclNetProperties_v9_t, port, 40);
GYRE_AT(ncclNetProperties_v9_t, latency, 44);
GYRE_AT(ncclNetProperties_v9_t, maxComms, 48);
GYRE_AT(ncclNetProperties_v9_t, maxRecvs, 52);
GYRE_AT(ncclNetProperties_v9_t, netDeviceType, 56);
GYRE_AT(ncclNetProperties_v9_t, netDeviceVersion, 60);
GYRE_AT(ncclNetProperties_v9_t, vProps, 64);
GYRE_AT(ncclNetProperties_v9_t, maxP2pBytes, 88);
GYRE_AT(ncclNetProperties_v9_t, maxCollBytes, 96);

GYRE_SIZE(ncclNetProperties_v10_t, 104);
GYRE_AT(ncclNetProperties_v10_t, name, 0);
GYRE_AT(ncclNetProperties_v10_t, pciPath, 8);
GYRE_AT(ncclNetProperties_v10_t, guid, 16);
GYRE_AT(ncclNetProperties_v10_t, ptrSupport, 24);
GYRE_AT(ncclNetProperties_v10_t, regIsGlobal, 28);
GYRE_AT(ncclNetProperties_v10_t, forceFlush, 32);
GYRE_AT(ncclNetProperties_v10_t, speed, 36);
GYRE_AT(ncclNetProperties_v10_t, port, 40);
GYRE_AT(ncclNetProperties_v10_t, latency, 44);
GYRE_AT(ncclNetProperties_v10_t, maxComms, 48);
GYRE_AT(ncclNetProperties_v10_t, maxRecvs, 52);
GYRE_AT(ncclNetProperties_v10_t, netDeviceType, 56);
GYRE_AT(ncclNetProperties_v10_t, netDeviceVersion, 60);
GYRE_AT(ncclNetProperties_v10_t, vProps, 64);
GYRE_AT(ncclNetProperties_v10_t, maxP2pBytes, 88);
GYRE_AT(ncclNetProperties_v10_t, maxCollBytes, 96);

GYRE_SIZE(ncclNetProperties_v11_t, 112);
GYRE_AT(ncclNetProperties_v11_t, name, 0);
GYRE_AT(ncclNetProperties_v11_t, pciPath, 8);
GYRE_AT(ncclNetProperties_v11_t, guid, 16);
GYRE_AT(ncclNetProperties_v11_t, ptrSupport, 24);
GYRE_AT(ncclNetProperties_v11_t, regIsGlobal, 28);
GYRE_AT(ncclNetProperties_v11_t, forceFlush, 32);
GYRE_AT(ncclNetProperties_v11_t, speed, 36);
GYRE_AT(ncclNetProperties_v11_t, port, 40);
GYRE_AT(ncclNetProperties_v11_t, latency, 44);
GYRE_AT(ncclNetProperties_v11_t, maxComms, 48);
GYRE_AT(ncclNetProperties_v11_t, maxRecvs, 52);
GYRE_AT(ncclNetProperties_v11_t, netDeviceType, 56);
GYRE_AT(ncclNetProperties_v11_t, netDeviceVersion, 60);
GYRE_AT(ncclNetProperties_v11_t, vProps, 64);
GYRE_AT(ncclNetProperties_v11_t, maxP2pBytes, 88);
GYRE_AT(ncclNetProperties_v11_t, maxCollBytes, 96);
GYRE_AT(ncclNetProperties_v11_t, maxMultiRequestSize, 104);

GYRE_SIZE(ncclNetProperties_v12_t, 128);
GYRE_AT(ncclNetProperties_v12_t, name, 0);
GYRE_AT(ncclNetProperties_v12_t, pciPath, 8);
GYRE_AT(ncclNetProperties_v12_t, guid, 16);
GYRE_AT(ncclNetProperties_v12_t, ptrSupport, 24);
GYRE_AT(ncclNetProperties_v12_t, regIsGlobal, 28);
GYRE_AT(ncclNetProperties_v12_t, forceFlush, 32);
GYRE_AT(ncclNetProperties_v12_t, speed, 36);
GYRE_AT(ncclNetProperties_v12_t, port, 40);
GYRE_AT(ncclNetProperties_v12_t, latency, 44);
GYRE_AT(ncclNetProperties_v12_t, maxComms, 48);
GYRE_AT(ncclNetProperties_v12_t, maxRecvs, 52);
GYRE_AT(ncclNetProperties_v12_t, netDeviceType, 56);
GYRE_AT(ncclNetProperties_v12_t, netDeviceVersion, 60);
GYRE_AT(ncclNetProperties_v12_t, vProps, 64);
GYRE_AT(ncclNetProperties_v12_t, maxP2pBytes, 104);
GYRE_AT(ncclNetProperties_v12_t, maxCollBytes, 112);
GYRE_AT(ncclNetProperties_v12_t, maxMultiRequestSize, 120);
GYRE_AT(ncclNetProperties_v12_t, railId, 124);
GYRE_AT(ncclNetProperties_v12_t, planeId, 126);

#undef GYRE_SIZE
#undef GYRE_AT
