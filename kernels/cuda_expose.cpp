// GPU memory that NICs reach (GPUDirect RDMA): by its address, where nvidia_peermem tells their drivers of it, or as a DMA-BUF. Not run on
// hardware.
#include <fmt/format.h>

#include <cstring>

#include "kernels/cuda_place.h"

namespace gyre::kernels {
namespace {

Result<bool> has(const Place& place, CUdevice_attribute attribute) {
  int value = 0;
  GYRE_TRY(said("cuDeviceGetAttribute", place.driver.attribute(&value, attribute, place.device)));
  return value != 0;
}

// Of whole pages, as this is.
Result<UniqueFd> dmabuf_of(const std::byte* memory, size_t bytes) {
  decltype(&cuMemGetHandleForAddressRange) handle_of = nullptr;
  void* const found = GYRE_TRY(driver_function("cuMemGetHandleForAddressRange"));
  std::memcpy(&handle_of, &found, sizeof found);
  int fd = -1;
  const auto result = handle_of(&fd, reinterpret_cast<CUdeviceptr>(memory), bytes, CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0);
  GYRE_TRY(said("cuMemGetHandleForAddressRange", result));
  return UniqueFd(fd);
}

}  // namespace

Result<ExposedMemory> Place::allocate_exposed(size_t bytes) {
  const On on(*this);
  GYRE_TRY(on.there());
  if (!GYRE_TRY(has(*this, CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_SUPPORTED)))
    return Error{Code::cuda, fmt::format("GPU {} has no GPUDirect RDMA", device)};
  ExposedMemory exposed{GYRE_TRY(allocate_whole(whole(bytes)))};
  if (!GYRE_TRY(has(*this, CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED))) return exposed;
  // Without one there is still its address.
  if (auto dmabuf = dmabuf_of(exposed.memory.get(), whole(bytes))) exposed.dmabuf = *std::move(dmabuf);
  return exposed;
}

}  // namespace gyre::kernels
