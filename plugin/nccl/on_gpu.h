// The part of a communicator that runs collectives, sends and receives on GPU memory, in the order of streams. What it is made of depends
// on how gyre was built: on_device.cpp has gyre's kernels (engine::DeviceCommunicator), on_no_device.cpp none; tests have a GPU of the
// host's threads.
#pragma once
#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/communicator.h"
#include "plugin/abi/nccl.h"
#include "topo/gpu_row.h"

namespace gyre::plugin::nccl {

/// As engine::DeviceCommunicator, and engine::DeviceTransfers.
class OnGpu {
 public:
  OnGpu() = default;
  OnGpu(const OnGpu&) = delete;
  OnGpu& operator=(const OnGpu&) = delete;
  virtual ~OnGpu() = default;

  virtual Status enqueue(const engine::Call&, const void* input, void* output, cudaStream_t) = 0;
  virtual Status why_not(const engine::Call&) = 0;
  virtual Status status() = 0;
  virtual const Error* failure() const = 0;
  virtual Status finish(const std::function<Status()>& meanwhile) = 0;
  /// So many sends and receives of a group may be carried, if there is room for them, which is made then.
  virtual size_t most_carried() const { return 0; }
  virtual bool make_room(const std::vector<engine::Transfer>&) { return false; }
  /// By that communicator of the host's, which is nobody else's until all are carried.
  virtual Status carry(engine::Communicator& /*by*/, const std::vector<engine::Transfer>&, cudaStream_t) {
    return Error{Code::invalid_usage, "this GPU's streams can't wait for what others send"};
  }
  /// Error: some can't be any more, or what is wrong may keep them.
  virtual Result<bool> all_carried() { return true; }
  virtual bool idle() = 0;
  virtual bool in_graphs() = 0;
  virtual void abort(std::string_view why) = 0;
};

/// Takes a communicator that has run nothing; called by all its ranks.
using MakeOnGpu = std::function<Result<std::unique_ptr<OnGpu>>(std::unique_ptr<engine::Communicator>)>;
/// On the GPU of this number, as CUDA counts, which the process opens once and never closes. Error: why gyre can't use it.
Result<MakeOnGpu> use_gpu(int device);

/// What that GPU is to others and to the network. None: nobody says, and messages do without what could be known of their ways; for the
/// rank, which is logged.
std::optional<topo::GpuRow> where_it_is(int device, Rank);

struct GpusOfAll {
  MakeOnGpu make;
  std::string refusal;  ///< which rank can't use its GPU, and why, the same on all ranks; empty: all can
};
/// Called by all ranks, each with its device.
Result<GpusOfAll> gpus_of_all(transport::Bootstrap&, int device);
/// Called by all ranks that all can. `cancelled`: as in transport::Rendezvous.
Result<std::unique_ptr<OnGpu>> make_on_gpus(engine::Communicator&, const MakeOnGpu&, int device, const std::atomic<bool>* cancelled);
/// Both. Null: not all ranks have a GPU that gyre can use, which is logged where some have.
Result<std::unique_ptr<OnGpu>> join_on_gpus(engine::Communicator&, int device, const std::atomic<bool>* cancelled);

}  // namespace gyre::plugin::nccl
