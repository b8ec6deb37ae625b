/* Sizes and offsets of what NCCL's own interface passes, on LP64, as measured on NCCL's own releases. */
#pragma once
#include <assert.h>
#include <stddef.h>

#include "plugin/abi/nccl.h"

static_assert(sizeof(ncclUniqueId) == 128, "ncclUniqueId");
static_assert(sizeof(ncclDataType_t) == 4 && sizeof(ncclRedOp_t) == 4 && sizeof(ncclResult_t) == 4, "enumerations");
static_assert(sizeof(ncclConfig_t) == 120, "ncclConfig_t of 2.32");
static_assert(offsetof(ncclConfig_t, magic) == 8 && offsetof(ncclConfig_t, version) == 12 && offsetof(ncclConfig_t, blocking) == 16,
              "of 2.14");
static_assert(offsetof(ncclConfig_t, cgaClusterSize) == 20 && offsetof(ncclConfig_t, netName) == 32, "of 2.17");
static_assert(offsetof(ncclConfig_t, splitShare) == 40 && offsetof(ncclConfig_t, trafficClass) == 44, "of 2.18 and 2.26");
static_assert(offsetof(ncclConfig_t, commName) == 48 && offsetof(ncclConfig_t, nvlsCTAs) == 68, "of 2.27");
static_assert(offsetof(ncclConfig_t, nChannelsPerNetPeer) == 72 && offsetof(ncclConfig_t, nvlinkCentricSched) == 76, "of 2.28");
static_assert(offsetof(ncclConfig_t, graphUsageMode) == 80 && offsetof(ncclConfig_t, numRmaCtx) == 84, "of 2.29");
static_assert(offsetof(ncclConfig_t, maxP2pPeers) == 88 && offsetof(ncclConfig_t, graphStreamOrdering) == 92, "of 2.30");
static_assert(offsetof(ncclConfig_t, launchOrderImplicit) == 96 && offsetof(ncclConfig_t, hostCftMode) == 108, "of 2.31");
static_assert(offsetof(ncclConfig_t, nvlsHostMode) == 112, "of 2.32");
static_assert(offsetof(ncclCollConfig_t, ext) == 16 && offsetof(ncclCollConfig_t, minCTAs) == 24, "of 2.31");
static_assert(offsetof(ncclCollConfig_t, algSelection) == 40 && offsetof(ncclCollConfig_t, userProfilerTag) == 56, "of 2.31");
static_assert(offsetof(ncclCollConfig_t, launchCompletionEvent) == 64 && sizeof(ncclCollConfig_t) == 72, "ncclCollConfig_t of 2.32");
static_assert(offsetof(ncclEncryptionConfig_t, mode) == 16 && sizeof(ncclEncryptionConfig_t) == 32, "ncclEncryptionConfig_t of 2.32");
static_assert(sizeof(ncclSimInfo_t) == 24 && offsetof(ncclSimInfo_t, estimatedTime) == 16, "ncclSimInfo_t");
static_assert(sizeof(ncclWaitSignalDesc_t) == 16, "ncclWaitSignalDesc_t");
static_assert(sizeof(ncclTeam_t) == 12 && sizeof(ncclMultimemHandle_t) == 8 && sizeof(ncclCftTeamMode_t) == 4,
              "of the interface for kernels");
