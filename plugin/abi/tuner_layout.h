/* Sizes and offsets of NCCL's tuner tables on LP64, as measured on NCCL's own releases. A test includes this from C and from C++. */
#pragma once
#include <assert.h>
#include <stddef.h>

#include "plugin/abi/tuner.h"

#define GYRE_SIZE(type, bytes) static_assert(sizeof(type) == (bytes), #type " has another size than NCCL's")
#define GYRE_AT(type, field, bytes) static_assert(offsetof(type, field) == (bytes), #type "'s " #field " is not where NCCL has it")

GYRE_SIZE(ncclFunc_t, 4);
GYRE_SIZE(ncclTuner_v1_t, 32);
GYRE_AT(ncclTuner_v1_t, init, 8);
GYRE_AT(ncclTuner_v1_t, getCollInfo, 16);
GYRE_AT(ncclTuner_v1_t, destroy, 24);
GYRE_SIZE(ncclTuner_v2_t, 32);
GYRE_AT(ncclTuner_v2_t, init, 8);
GYRE_AT(ncclTuner_v2_t, getCollInfo, 16);
GYRE_AT(ncclTuner_v2_t, destroy, 24);
GYRE_SIZE(ncclTuner_v3_t, 32);
GYRE_AT(ncclTuner_v3_t, init, 8);
GYRE_AT(ncclTuner_v3_t, getCollInfo, 16);
GYRE_AT(ncclTuner_v3_t, destroy, 24);
GYRE_SIZE(ncclTuner_v4_t, 32);
GYRE_AT(ncclTuner_v4_t, init, 8);
GYRE_AT(ncclTuner_v4_t, getCollInfo, 16);
GYRE_AT(ncclTuner_v4_t, destroy, 24);
GYRE_SIZE(ncclTuner_v5_t, 32);
GYRE_AT(ncclTuner_v5_t, init, 8);
GYRE_AT(ncclTuner_v5_t, getCollInfo, 16);
GYRE_AT(ncclTuner_v5_t, finalize, 24);
GYRE_SIZE(ncclTuner_v6_t, 40);
GYRE_AT(ncclTuner_v6_t, init, 8);
GYRE_AT(ncclTuner_v6_t, getCollInfo, 16);
GYRE_AT(ncclTuner_v6_t, finalize, 24);
GYRE_AT(ncclTuner_v6_t, getChunkSize, 32);

GYRE_SIZE(ncclNvlDomainInfo_v5_t, 12);
GYRE_AT(ncclNvlDomainInfo_v5_t, minRanksPerNvlDomain, 4);
GYRE_AT(ncclNvlDomainInfo_v5_t, maxRanksPerNvlDomain, 8);
GYRE_SIZE(ncclTunerConstants_v5_t, 1152);
GYRE_AT(ncclTunerConstants_v5_t, hwLatencies, 168);
GYRE_AT(ncclTunerConstants_v5_t, llMaxBws, 672);
GYRE_AT(ncclTunerConstants_v5_t, perChMaxRingLL128Bws, 768);
GYRE_AT(ncclTunerConstants_v5_t, perChMaxTreeLL128Bws, 864);
GYRE_AT(ncclTunerConstants_v5_t, perChMaxTreeBws, 960);
GYRE_AT(ncclTunerConstants_v5_t, perChMaxNVLSTreeBws, 1056);

#undef GYRE_SIZE
#undef GYRE_AT
