// Calls on their way to NCCL or to gyre, alone or in a group; those on GPU memory as wrap_gpu.h says. On host memory a group of nothing but
// calls that gyre may run, on one communicator, is held back until its end, and gyre's; with the first call of another kind the whole group
// is NCCL's, and those held back are given to it, in order.
//
//   may be gyre's ──> alone, or held to the end of its group ──> all ranks agree? ──yes──> gyre, after what NCCL has of this communicator
//        └─ in a group with others, or this rank can't: ─────────────────┴──no──> NCCL
//
// What gyre runs is done when the call, or the end of its group, returns.
#pragma once
#include <functional>
#include <memory>

#include "plugin/nccl/group.h"
#include "plugin/nccl/wrap_comm.h"

namespace gyre::plugin::nccl::wrap {

using Kept = std::function<ncclResult_t()>;

/// Gives a call to NCCL, mostly at once, for which it takes no memory: what it was made of lives longer than this.
class Forward {
 public:
  template <class Call>
  Forward(const Call& call)  // NOLINT(google-explicit-constructor): whatever can be called
      : call_(&call),
        run_([](const void* of) { return (*static_cast<const Call*>(of))(); }),
        keep_([](const void* of) { return Kept(*static_cast<const Call*>(of)); }) {}
  ncclResult_t operator()() const { return run_(call_); }
  /// For later.
  Kept keep() const { return keep_(call_); }

 private:
  const void* call_;
  ncclResult_t (*run_)(const void*);
  Kept (*keep_)(const void*);
};

/// A call that gyre may run by its rules, which are the same on all ranks.
struct Issued {
  std::shared_ptr<Beside> comm;
  Operation operation;
  const char* unwilling;  ///< why this rank gives it to NCCL; null: it does not
  Kept forward;           ///< gives it to NCCL
};

Result<ncclResult_t> issue(Issued);
/// A collective that is NCCL's by what is the same on all ranks. `comm`: null, or gyre's beside NCCL's, of which this is on that stream.
Result<ncclResult_t> leave(const std::shared_ptr<Beside>& comm, cudaStream_t, const Forward&);
/// Any other call that a group records.
Result<ncclResult_t> pass(const std::shared_ptr<Beside>& comm, cudaStream_t, const Forward&);
/// What would take from calls on GPU memory that its group holds back of that communicator what they need, should they be NCCL's yet: after
/// the group then, else as pass().
Result<ncclResult_t> pass_behind_held(const std::shared_ptr<Beside>& comm, const Forward&);

}  // namespace gyre::plugin::nccl::wrap
