// NCCL's tuner tables: their symbols, which the net plugin's .so shows beside its own.
#pragma once
#include "plugin/abi/tuner.h"

#define GYRE_EXPORTED __attribute__((visibility("default")))

extern "C" {
extern const GYRE_EXPORTED ncclTuner_v1_t ncclTunerPlugin_v1;
extern const GYRE_EXPORTED ncclTuner_v2_t ncclTunerPlugin_v2;
extern const GYRE_EXPORTED ncclTuner_v3_t ncclTunerPlugin_v3;
extern const GYRE_EXPORTED ncclTuner_v4_t ncclTunerPlugin_v4;
extern const GYRE_EXPORTED ncclTuner_v5_t ncclTunerPlugin_v5;
extern const GYRE_EXPORTED ncclTuner_v6_t ncclTunerPlugin_v6;
}

#undef GYRE_EXPORTED
