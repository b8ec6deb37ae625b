// gyre's communicator beside one of NCCL's, with the same ranks. It is known by NCCL's handle; a handle that is not known is of a
// communicator that is NCCL's alone.
//
// Whether gyre runs a call that it may take over is agreed for each call by all ranks, since each sees something that the others don't:
// that the call is in a group with sends, that a stream is being captured, that a buffer is a GPU's after all. That takes a small
// collective.
#pragma once
#include <array>
#include <memory>
#include <mutex>
#include <string_view>

#include "plugin/nccl/comm.h"
#include "plugin/nccl/cuda_driver.h"

namespace gyre::plugin::nccl::wrap {

class Beside final : public Comm {
 public:
  Beside(Rank own, int ranks) : Comm(own, ranks, 0, Settings()) {}

  /// In the thread that has begun a call: all ranks are willing to give the next call to gyre, this one among them.
  Result<bool> agree(bool willing);
  /// Tells the others, in the background, that this rank gives so many calls to NCCL.
  static void decline(const std::shared_ptr<Beside>&, size_t calls);
  /// Until what was declined is told.
  void wait_for_declined();

  /// Logs who runs such a call and why, once for each collective and size class.
  void say(const engine::Call&, std::string_view who, std::string_view why = {});

  cuda::Mark by_nccl;  ///< its last call that NCCL runs

 private:
  void tell_declined();

  std::mutex mutex_;
  size_t declined_ = 0;  // and not told yet
  bool telling_ = false;
  std::array<uint64_t, collective_count> said_{};  // a bit for each size class
};

/// Null: the communicator is NCCL's alone, or none.
std::shared_ptr<Beside> beside(ncclComm_t);
/// The same, of one that ends.
std::shared_ptr<Beside> take_beside(ncclComm_t);

}  // namespace gyre::plugin::nccl::wrap
