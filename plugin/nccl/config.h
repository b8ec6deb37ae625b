// What a program says with its ncclConfig_t, of whatever release of NCCL.
#pragma once
#include "base/result.h"
#include "plugin/abi/nccl.h"

namespace gyre::plugin::nccl {

/// Of all that NCCL lets a program say: what means something without its kernels. The rest is checked, and ignored.
struct Settings {
  bool blocking = true;
};

/// Null: as `otherwise` says. What a config leaves open is as by default. NCCL_COMM_BLOCKING overrides. Errors name the field.
Result<Settings> settings(const ncclConfig_t*, Settings otherwise = {});
/// Of one collective by gyre alone: null, or one that may be passed over. Error: it is none, or asks for what gyre can't do.
Status can_do(const ncclCollConfig_t*);
/// Of connections by gyre alone, which are never encrypted.
Status can_do(const ncclEncryptionConfig_t*);

}  // namespace gyre::plugin::nccl
