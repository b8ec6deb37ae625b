#include "kernels/load_steps.h"

#include <cuda_runtime_api.h>

#include <string>

#include "kernels/table.h"

namespace gyre::kernels {
namespace {

Status load(DataType type, ReduceOp op, Shape shape) {
  cudaFuncAttributes attributes;
  const cudaError_t error = cudaFuncGetAttributes(&attributes, reinterpret_cast<const void*>(step_kernel_of(type, op, shape)));
  if (error == cudaSuccess) return {};
  cudaGetLastError();  // so that no later call reports it
  const bool may_lack = !is_integer(type) && size_of(type) == 1;
  if (may_lack && (error == cudaErrorNoKernelImageForDevice || error == cudaErrorInvalidDeviceFunction)) return {};
  return Error{Code::cuda, "the kernel of " + std::string(name(type)) + " " + std::string(name(op)) + ", shape " +
                               std::to_string(static_cast<int>(shape)) + ", can't be loaded: " + cudaGetErrorString(error)};
}

}  // namespace

Status load_step_kernels() {
  for (DataType type : all_data_types()) {
    for (size_t op = 0; op < every_reduce_op_count; ++op) {
      for (size_t shape = 0; shape < shape_count; ++shape) {
        if (Status status = load(type, static_cast<ReduceOp>(op), static_cast<Shape>(shape)); !status) return status;
      }
    }
  }
  return {};
}

}  // namespace gyre::kernels
