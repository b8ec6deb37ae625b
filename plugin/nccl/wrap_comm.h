// gyre's communicator beside one of NCCL's, with the same ranks. It is known by NCCL's handle; a handle that is not known is of a
// communicator that is NCCL's alone.
//
// On host memory all ranks agree for each call whether gyre runs it, since each sees something that the others don't: that the call is in
// a group with sends, that a stream is being captured, that a buffer is a GPU's after all. That takes a small collective. On GPU memory no
// call waits for other ranks, and nothing is asked (wrap_gpu.h).
#pragma once
#include <array>
#include <atomic>
#include <deque>
#include <memory>
#include <mutex>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "plugin/nccl/comm.h"
#include "plugin/nccl/cuda_driver.h"
#include "plugin/nccl/wrap_background.h"
#include "plugin/nccl/wrap_rules.h"

namespace gyre::plugin::nccl::wrap {

class Beside final : public Comm {
 public:
  /// `on`: the device of this number, which has that context. `blocks`: NCCL's does.
  Beside(Rank own, int ranks, int on, cuda::Context there, Rules by, bool blocks)
      : Comm(own, ranks, on, Settings()), context(there), rules(std::move(by)), nccl_blocks(blocks) {}

  /// In the thread that has begun a call: all ranks are willing to give the next call to gyre, this one among them.
  Result<bool> agree(bool willing);
  /// Tells the others, in the background, that this rank gives so many calls to NCCL.
  static void decline(const std::shared_ptr<Beside>&, size_t calls);
  /// Until what was declined is told.
  void wait_for_declined();

  /// By the program, which knows: what its streams have of gyre's ends, and its errors are NCCL's from then on. Error: it does not live.
  Status give_up();
  std::atomic<bool> given_up{false};
  std::atomic<bool> stays_away{false};  ///< from votes on parts of its ranks, of which gyre makes none any more (wrap_forming.h)

  /// Logs who runs such a call and why, once for each collective and size class.
  void say(const engine::Call&, std::string_view who, std::string_view why = {});

  const cuda::Context context;   ///< its calls' streams are of, whatever the calling thread is in; null: there is no CUDA
  const Rules rules;             ///< what gyre may take over of its calls
  const bool nccl_blocks;        ///< else NCCL may go on with what it is called for after it has answered
  Background background;         ///< what is made of its ranks by then, or it itself
  std::deque<ncclComm_t> parts;  ///< where NCCL puts those, which may be as long as this lives

  // Of its calls so far, whichever stream they were given.
  cuda::Mark by_nccl{context};  ///< the last one that NCCL runs
  cuda::Mark by_gyre{context};  ///< the last one on GPU memory that gyre runs
  /// NCCL has answered a call on that stream. One in progress comes to the stream later, and is marked when it has: when the thread that
  /// has called hears that the communicator is ready, …
  Status note_by_nccl(cudaStream_t, ncclResult_t);
  bool launches_here() const { return launcher_ == std::this_thread::get_id(); }
  /// … or, where another one has (a watchdog, say, that is to ask no GPU), when the communicator's next call is made: that then comes after
  /// what the program has given the stream since, too, none of which can wait for it. The stream must be there until then.
  bool launches() const { return launcher_ != std::thread::id(); }
  Status mark_launched();

  /// It was finalized without a wait, and what its GPU was given has not ended.
  bool winds_up() const { return finalized && !nccl_blocks && on_gpu() != nullptr && !on_gpu()->idle(); }

  /// Memory that all ranks have registered together, each its own: NCCL has better ways there.
  struct Window {
    ncclWindow_t window;
    const std::byte* memory;
    size_t bytes;
  };
  std::vector<Window> windows;
  bool in_window(const void*) const;

  // Who takes the communicator (below) has NCCL free its handle. Any thread may, while another one waits here on its way to NCCL.
  /// Asked after each wait, before the handle is given to NCCL. Error: it was freed meanwhile, or is about to be.
  Status lives() const;
  std::atomic<int> ending_groups{0};  ///< on their way to NCCL, which has the handle for them
  /// Before NCCL frees the handle: who asks hears that it does not live, and groups are waited for, but not for long: what keeps them may
  /// be NCCL's to abort.
  void withdraw();

 private:
  void tell_declined();

  std::atomic<bool> withdrawn_{false};
  std::mutex mutex_;
  std::atomic<std::thread::id> launcher_{};  // none: of no call that is in progress …
  cudaStream_t launched_on_ = nullptr;       // … on that stream
  size_t declined_ = 0;                      // and not told yet
  bool telling_ = false;
  std::array<std::array<uint64_t, collective_count>, 2> said_{};  // of NCCL and of gyre: a bit for each size class
};

/// Null: the communicator is NCCL's alone, or none.
std::shared_ptr<Beside> beside(ncclComm_t);
/// The same after what is in the background. Error: NCCL is at work there.
Result<std::shared_ptr<Beside>> settled_beside(ncclComm_t);
/// The same for a call. Error: NCCL is at work on one before it, too.
Result<std::shared_ptr<Beside>> ready_beside(ncclComm_t);
/// The same, of one whose handle NCCL is to free; whoever ends it too finds none.
std::shared_ptr<Beside> take_beside(ncclComm_t);
/// ncclCommGetAsyncError of NCCL's and what is in the background.
Result<ncclResult_t> ask(Beside&, ncclComm_t, ncclResult_t* state);

}  // namespace gyre::plugin::nccl::wrap
