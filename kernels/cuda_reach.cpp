// GPU memory that other ranks' kernels reach: by its address where they are of this process, else by CUDA's IPC.
#include <fmt/format.h>

#include <array>
#include <cstring>
#include <random>

#include "kernels/cuda_place.h"

namespace gyre::kernels {
namespace {

/// Drawn once: process numbers come again, and differ between containers.
using ProcessToken = std::array<uint32_t, 4>;
const ProcessToken& own_process() {
  static const ProcessToken token = [] {
    std::random_device random;
    return ProcessToken{random(), random(), random(), random()};
  }();
  return token;
}

/// Its bytes are the handle.
struct Handle {
  ProcessToken process{};
  CUuuid uuid{};  // of the device
  int32_t device = 0;
  int32_t has_ipc = 0;  ///< else for this process only
  std::byte* address = nullptr;
  cudaIpcMemHandle_t ipc{};
};

Status enable_peer(int device, int peer) {
  int can = 0;
  GYRE_TRY(said("cudaDeviceCanAccessPeer", cudaDeviceCanAccessPeer(&can, device, peer)));
  if (can == 0) return Error{Code::cuda, fmt::format("GPU {} can't reach the memory of GPU {}", device, peer)};
  const cudaError_t error = cudaDeviceEnablePeerAccess(peer, 0);
  if (error != cudaErrorPeerAccessAlreadyEnabled) return said("cudaDeviceEnablePeerAccess", error);
  cudaGetLastError();  // so that no later call reports it
  return {};
}

}  // namespace

Result<GpuMemory> Place::allocate_whole(size_t bytes) {
  std::byte* memory = kept(reachable_, bytes);
  if (memory == nullptr) {
    void* fresh = nullptr;
    if (Status status = said("cudaMalloc", cudaMalloc(&fresh, bytes)); !status)
      return Error{Code::cuda, fmt::format("{}, of {} bytes on GPU {}", status.error().what, bytes, device)};
    memory = static_cast<std::byte*>(fresh);
  }
  return keeping(memory, reachable_, bytes);
}  // NOLINT(clang-analyzer-cplusplus.NewDeleteLeaks): a std::function's own, which it gives back

Result<ReachableMemory> Place::allocate_reachable(size_t bytes) {
  const On on(*this);
  GYRE_TRY(on.there());
  auto memory = GYRE_TRY(allocate_whole(whole(bytes)));
  Handle handle{own_process(), uuid, device, 0, memory.get(), {}};
  handle.has_ipc = said("cudaIpcGetMemHandle", cudaIpcGetMemHandle(&handle.ipc, memory.get())) ? 1 : 0;
  std::string bytes_of_handle(sizeof handle, '\0');
  std::memcpy(bytes_of_handle.data(), &handle, sizeof handle);
  return ReachableMemory{std::move(memory), std::move(bytes_of_handle)};
}

Result<ReachedMemory> Place::reach(std::string_view bytes) {
  Handle handle;
  if (bytes.size() != sizeof handle) return Error{Code::cuda, fmt::format("a handle of GPU memory of {} bytes", bytes.size())};
  std::memcpy(&handle, bytes.data(), sizeof handle);
  const On on(*this);
  GYRE_TRY(on.there());
  const bool here = std::memcmp(&handle.uuid, &uuid, sizeof uuid) == 0;
  if (handle.process == own_process()) {
    if (handle.device != device) GYRE_TRY(enable_peer(device, handle.device));
    return ReachedMemory{handle.address, here, false, true};
  }
  if (handle.has_ipc == 0) return Error{Code::cuda, fmt::format("GPU {} of another process has no IPC", handle.device)};
  const std::lock_guard lock(mutex_);
  if (const auto known = reached_.find(bytes); known != reached_.end()) return ReachedMemory{known->second, here, here};
  void* memory = nullptr;
  GYRE_TRY(said("cudaIpcOpenMemHandle", cudaIpcOpenMemHandle(&memory, handle.ipc, cudaIpcMemLazyEnablePeerAccess)));
  return ReachedMemory{reached_.emplace(bytes, static_cast<std::byte*>(memory)).first->second, here, here};
}

}  // namespace gyre::kernels
