// How gyre's communicators come to be beside NCCL's. When NCCL has made one on this rank, all ranks have asked for it, so that they need
// not wait long for each other. They meet by gyre's own bootstrap, never by a collective of NCCL's:
//
//   NCCL has made it ─> join ─> all say: version, options, memory; its GPU ─> connect ─> all say: made ─> gyre's is beside it
//                        │                        │                             │              │
//                        └── a rank stays away, differs, has none, fails: ──────┴──────────────┴──> NCCL's alone, on all ranks
//
// Where NCCL goes on with that after it has answered gyre does its part in the background, too (wrap_background.h).
//
// Nobody takes a call over who has not heard of all that they made it. A rank that loses the others while it waits for that word gives up
// loudly: those that have heard it get an error of their next call, and do not wait.
#pragma once
#include <atomic>
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

/// NCCL's of this rank, as it has come of what made it.
struct Made {
  ncclResult_t result = ncclSuccess;
  ncclComm_t comm = nullptr;                     ///< null: there is none
  int device = 0, rank = -1, ranks = -1;         ///< of it
  bool blocks = true;                            ///< it was made before NCCL has answered, or of ranks of such a one
  const std::atomic<bool>* cancelled = nullptr;  ///< once it is true gyre's is wanted no more; null: it stays wanted
};

/// A communicator that NCCL makes on this rank.
struct Birth {
  std::string who;   ///< for what is logged: which rank of which communicator
  ncclComm_t* made;  ///< where the program wants it
  /// gyre's, or why there is none.
  std::function<Result<Parts>(const Made&)> make;
  std::shared_ptr<Beside> parent{};    ///< of whose ranks it is; null: each has brought the unique id
  ncclComm_t parent_handle = nullptr;  ///< of it
  ncclComm_t* place = nullptr;         ///< where NCCL puts it; null: where the program wants it
  ncclComm_t* at() const { return place != nullptr ? place : made; }
  ncclResult_t refused = ncclSuccess;  ///< by NCCL, at once, in a group whose end may succeed all the same
};

/// gyre's, which has no handle yet; null: there is none, of which the reason is logged.
std::shared_ptr<Beside> form_one(const Birth&, const Made&) noexcept;
/// All at the same time, since several ranks of a communicator may be this thread's; those in the background are only begun.
void form(const std::vector<Birth>&, ncclResult_t by_nccl) noexcept;

/// Of ranks that meet there.
Result<Parts> meet(const Meeting&, const Made&);
/// Of the parent's ranks. `refusal`: why this rank wants none; empty: it does.
Result<Parts> split(Beside& parent, int color, int key, const Made&, const std::string& refusal);
/// For a rank that NCCL has refused its part. Whether it has before the others came, whose vote is then yet to come, or after, nobody
/// knows: so it has voted against all parts of the parent from now on, and comes to no vote.
Result<Parts> stay_away(Beside& parent);
Result<Parts> shrink(Beside& parent, const std::vector<Rank>& without, const Made&);

}  // namespace gyre::plugin::nccl::wrap
