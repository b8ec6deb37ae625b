#include "kernels/cuda_gpu.h"

#include <cuda.h>
#include <cuda_runtime_api.h>

#include <chrono>
#include <iterator>
#include <map>

#include "base/log.h"
#include "kernels/cuda_place.h"
#include "kernels/table.h"

namespace gyre::kernels {
namespace {

class CudaStream final : public Stream {
 public:
  explicit CudaStream(const Place& place) : place_(place) {}
  ~CudaStream() override {
    const On on(place_);
    if (!on.there()) return;
    if (stream_ != nullptr) {
      cudaStreamSynchronize(stream_);
      cudaStreamDestroy(stream_);
    }
    if (event_ != nullptr) cudaEventDestroy(event_);
    for (const auto& [id, last] : last_captured_) cudaEventDestroy(last.event);
  }

  Status open(bool urgent = true) {
    const On on(place_);
    GYRE_TRY(on.there());
    int least = 0, highest = 0;
    GYRE_TRY(said("cudaDeviceGetStreamPriorityRange", cudaDeviceGetStreamPriorityRange(&least, &highest)));
    GYRE_TRY(said("cudaStreamCreateWithPriority", cudaStreamCreateWithPriority(&stream_, cudaStreamNonBlocking, urgent ? highest : least)));
    priority_ = highest;
    return said("cudaEventCreateWithFlags", cudaEventCreateWithFlags(&event_, cudaEventDisableTiming));
  }

  Status wait(const uint64_t* flag, uint64_t value) override {
    const On on(place_);
    GYRE_TRY(on.there());
    return said("cuStreamWaitValue64", place_.driver.wait(stream_, reinterpret_cast<CUdeviceptr>(flag), value, CU_STREAM_WAIT_VALUE_GEQ));
  }
  Status raise(uint64_t* flag, uint64_t value) override {
    const On on(place_);
    GYRE_TRY(on.there());
    return said("cuStreamWriteValue64",
                place_.driver.write(stream_, reinterpret_cast<CUdeviceptr>(flag), value, CU_STREAM_WRITE_VALUE_DEFAULT));
  }
  Status launch(StepKernel kernel, const StepArgs& args, unsigned blocks) override {
    return run(reinterpret_cast<const void*>(kernel), args, blocks);
  }
  Status launch(StayKernel kernel, const StayArgs& args, unsigned blocks) override {
    return run(reinterpret_cast<const void*>(kernel), args, blocks);
  }
  Status launch(PacketKernel kernel, const PacketArgs& args, unsigned blocks) override {
    return run(reinterpret_cast<const void*>(kernel), args, blocks);
  }

  Result<bool> done() override {
    const On on(place_);
    GYRE_TRY(on.there());
    const cudaError_t state = cudaStreamQuery(stream_);
    if (state != cudaErrorNotReady) return GYRE_TRY(said("the GPU", state)), true;
    cudaGetLastError();  // so that no later call reports it
    return false;
  }

  Result<uint64_t> capture_of(void* user) override {
    const On on(place_);
    GYRE_TRY(on.there());
    return GYRE_TRY(capture_info(user)).id;
  }
  // On the user's stream itself: one of this's would be in the capture, and of no other use, until that ends.
  Status capture(void* user, StayKernel kernel, const StayArgs& args, unsigned blocks, std::shared_ptr<void> kept) override {
    const On on(place_);
    GYRE_TRY(on.there());
    auto* const stream = static_cast<cudaStream_t>(user);
    const Capture capture = GYRE_TRY(capture_info(user));
    if (capture.id == 0) return Error{Code::invalid_usage, "the capture of a CUDA graph has ended"};
    const std::weak_ptr<void> held = kept;
    const auto before = last_captured_.find(capture.id);
    if (before != last_captured_.end()) GYRE_TRY(said("cudaStreamWaitEvent", cudaStreamWaitEvent(stream, before->second.event, 0)));
    StayArgs own = args;
    void* list[] = {&own};
    cudaLaunchAttribute urgent{};
    urgent.id = cudaLaunchAttributePriority;
    urgent.val.priority = priority_;
    cudaLaunchConfig_t how{};
    how.gridDim = dim3(blocks), how.blockDim = dim3(step_threads), how.stream = stream, how.attrs = &urgent, how.numAttrs = 1;
    GYRE_TRY(said("cudaLaunchKernelExC", cudaLaunchKernelExC(&how, reinterpret_cast<const void*>(kernel), list)));
    GYRE_TRY(keep(capture.graph, std::move(kept)));
    return note_captured(capture.id, stream, held);
  }
  Status follow(void* user) override { return order(static_cast<cudaStream_t>(user), stream_); }
  Status lead(void* user) override { return order(stream_, static_cast<cudaStream_t>(user)); }

 private:
  template <class Args>
  Status run(const void* kernel, Args args, unsigned blocks) {
    const On on(place_);
    GYRE_TRY(on.there());
    void* list[] = {&args};
    return said("cudaLaunchKernel", cudaLaunchKernel(kernel, dim3(blocks), dim3(step_threads), list, 0, stream_));
  }
  struct Capture {
    uint64_t id = 0;  // none
    cudaGraph_t graph = nullptr;
  };
  static Result<Capture> capture_info(void* user) {
    cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    unsigned long long id = 0;
    cudaGraph_t graph = nullptr;
#if CUDART_VERSION >= 13000
    const cudaError_t error = cudaStreamGetCaptureInfo(static_cast<cudaStream_t>(user), &status, &id, &graph);
#else
    const cudaError_t error = cudaStreamGetCaptureInfo_v2(static_cast<cudaStream_t>(user), &status, &id, &graph);
#endif
    GYRE_TRY(said("cudaStreamGetCaptureInfo", error));
    if (status == cudaStreamCaptureStatusInvalidated)
      return Error{Code::invalid_usage, "the stream's capture in a CUDA graph was invalidated by an earlier call"};
    return status == cudaStreamCaptureStatusActive ? Capture{id, graph} : Capture{};
  }
  Status note_captured(uint64_t id, cudaStream_t stream, const std::weak_ptr<void>& held) {
    if (last_captured_.count(id) == 0) {
      forget_captures();
      cudaEvent_t made = nullptr;
      GYRE_TRY(said("cudaEventCreateWithFlags", cudaEventCreateWithFlags(&made, cudaEventDisableTiming)));
      last_captured_[id].event = made;
    }
    LastCaptured& last = last_captured_[id];
    last.held = held;
    return said("cudaEventRecord", cudaEventRecord(last.event, stream));
  }
  void forget_captures() {
    for (auto last = last_captured_.begin(); last != last_captured_.end();) {
      const bool gone = last->second.held.expired();
      if (gone) cudaEventDestroy(last->second.event);
      last = gone ? last_captured_.erase(last) : std::next(last);
    }
  }
  // Who lets go makes no call into CUDA, which must not come from there. What could not be given to the graph is never let go of, since its
  // kernel is there and may run.
  static Status keep(cudaGraph_t graph, std::shared_ptr<void> kept) {
    auto own = std::make_unique<std::shared_ptr<void>>(std::move(kept));
    cudaUserObject_t object = nullptr;
    const auto let_go = [](void* held) { delete static_cast<std::shared_ptr<void>*>(held); };
    void* const held = own.release();
    GYRE_TRY(said("cudaUserObjectCreate", cudaUserObjectCreate(&object, held, let_go, 1, cudaUserObjectNoDestructorSync)));
    return said("cudaGraphRetainUserObject", cudaGraphRetainUserObject(graph, object, 1, cudaGraphUserObjectMove));
  }
  // The event may be recorded anew as soon as it is waited for.
  Status order(cudaStream_t first, cudaStream_t then) {
    const On on(place_);
    GYRE_TRY(on.there());
    GYRE_TRY(said("cudaEventRecord", cudaEventRecord(event_, first)));
    return said("cudaStreamWaitEvent", cudaStreamWaitEvent(then, event_, 0));
  }

  const Place& place_;
  cudaStream_t stream_ = nullptr;
  cudaEvent_t event_ = nullptr;
  /// Several captures may be under way in turn. Each has this until its graphs are gone, which is known without asking CUDA.
  struct LastCaptured {
    cudaEvent_t event = nullptr;  ///< recorded after it
    std::weak_ptr<void> held;     ///< by the graph
  };
  std::map<uint64_t, LastCaptured> last_captured_;  // by capture
  int priority_ = 0;
};

// With CUDA_DEVICE_MAX_CONNECTIONS=1, which some jobs set, all streams stand still behind a closed gate. While that is not known kernels
// stay, which is slower and always right.
Status learn_gates(Place& place) {
  constexpr std::chrono::milliseconds limit{50};
  const std::lock_guard lock(place.trying);
  if (place.gates != Gates::unknown) return {};
  int waits = 0;
  GYRE_TRY(said("cuDeviceGetAttribute", place.driver.attribute(&waits, CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS, place.device)));
  GateTrial trial{Gates::hold_others, "streams can't wait for flags"};
  if (waits != 0) {
    const GpuMemory memory = GYRE_TRY(place.allocate_pinned(sizeof(uint64_t)));
    const auto open = [&](bool urgent) -> Result<std::unique_ptr<Stream>> {
      auto stream = std::make_unique<CudaStream>(place);
      GYRE_TRY(stream->open(urgent));
      return std::unique_ptr<Stream>(std::move(stream));
    };
    const StepKernel kernel = step_kernel_of(DataType::uint8, ReduceOp::sum, Shape::one_to_one);
    trial = GYRE_TRY(try_gates(open, kernel, reinterpret_cast<uint64_t*>(memory.get()), limit));
  }
  place.gates = trial.gates;
  if (trial.gates != Gates::pass_others)
    log::warn("GPU {}: {}: collectives go by kernels that stay, which are slower{}", place.device, trial.why,
              trial.gates == Gates::unknown ? ", until another communicator is made" : "");
  return {};
}

class CudaGpu final : public Gpu {
 public:
  Status open(int device) {
    place_ = GYRE_TRY(Place::of(device));
    GYRE_TRY(learn_gates(*place_));
    const On on(*place_);
    GYRE_TRY(on.there());
    GYRE_TRY(said("cudaDeviceGetAttribute", cudaDeviceGetAttribute(&capability_, cudaDevAttrComputeCapabilityMajor, device)));
    return said("cudaDeviceGetAttribute", cudaDeviceGetAttribute(&processors_, cudaDevAttrMultiProcessorCount, device));
  }

  Result<std::unique_ptr<Stream>> open_stream() override {
    GYRE_TRY(learn_gates(*place_));
    auto stream = std::make_unique<CudaStream>(*place_);
    GYRE_TRY(stream->open());
    return std::unique_ptr<Stream>(std::move(stream));
  }
  Result<GpuMemory> allocate(size_t bytes) override { return place_->allocate(bytes); }
  Result<GpuMemory> allocate_pinned(size_t bytes) override { return place_->allocate_pinned(bytes); }
  Result<ReachableMemory> allocate_reachable(size_t bytes) override { return place_->allocate_reachable(bytes); }
  Result<ReachedMemory> reach(std::string_view handle) override { return place_->reach(handle); }
  Result<ExposedMemory> allocate_exposed(size_t bytes) override { return place_->allocate_exposed(bytes); }
  bool computes(DataType type) const override { return is_integer(type) || size_of(type) > 1 || capability_ >= 9; }
  bool streams_wait() const override { return place_->gates == Gates::pass_others; }
  /// A multiprocessor has room for one block at least.
  unsigned resident_blocks() const override { return static_cast<unsigned>(processors_); }

 private:
  Place* place_ = nullptr;
  int capability_ = 0, processors_ = 1;
};

}  // namespace

Result<std::unique_ptr<Gpu>> open_cuda_gpu(int device) {
  auto gpu = std::make_unique<CudaGpu>();
  GYRE_TRY(gpu->open(device));
  return std::unique_ptr<Gpu>(std::move(gpu));
}

}  // namespace gyre::kernels
