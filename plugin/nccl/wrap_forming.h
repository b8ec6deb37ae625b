// How gyre's communicators come to be beside NCCL's. When NCCL has made one on this rank, all ranks have asked for it, so that they need
// not wait long for each other. They meet by gyre's own bootstrap, never by a collective of NCCL's:
//
//   NCCL has made it ─> join ─> all say: version, options, memory; its GPU ─> connect ─> all say: made ─> gyre's is beside it
//                        │                        │                             │              │
//                        └── a rank stays away, differs, has none, fails: ──────┴──────────────┴──> NCCL's alone, on all ranks
//
// Nobody takes a call over who has not heard of all that they made it. A rank that loses the others while it waits for that word gives up
// loudly: those that have heard it get an error of their next call, and do not wait.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "plugin/nccl/unique_id.h"
#include "plugin/nccl/wrap_comm.h"

namespace gyre::plugin::nccl::wrap {

/// gyre's communicator.
struct Parts {
  std::unique_ptr<engine::Communicator> engine;  ///< null: this rank is in none, or nothing would be taken over
  std::unique_ptr<OnGpu> on_gpu;                 ///< not null: calls are on GPU memory
  cuda::Context context = nullptr;               ///< of its GPU
  Rules rules{};                                 ///< of its calls
};

/// A communicator that NCCL makes on this rank.
struct Birth {
  std::string who;   ///< for what is logged: which rank of which communicator
  ncclComm_t* made;  ///< where NCCL puts it
  /// gyre's, or why there is none. `by_nccl`: what NCCL has made of its own here.
  std::function<Result<Parts>(ncclResult_t by_nccl)> make;
};

/// All at the same time, since several ranks of a communicator may be this thread's. What fails is logged.
void form(const std::vector<Birth>&, ncclResult_t by_nccl) noexcept;

/// Of ranks that meet there. `made`: NCCL's, of this rank.
Result<Parts> meet(const Meeting&, const ncclComm_t* made);
/// Of the parent's ranks. `refusal`: why this rank wants none; empty: it does.
Result<Parts> split(Beside& parent, int color, int key, const ncclComm_t* made, const std::string& refusal);
/// For a rank that NCCL has refused its part. Whether it has before the others came, whose vote is then yet to come, or after, nobody
/// knows: so it has voted against all parts of the parent from now on, and comes to no vote.
Result<Parts> stay_away(Beside& parent);
Result<Parts> shrink(Beside& parent, const std::vector<Rank>& without, const ncclComm_t* made);

}  // namespace gyre::plugin::nccl::wrap
