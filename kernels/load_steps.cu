#include "kernels/load_steps.h"

#include <cuda_runtime_api.h>

#include <string>

#include "kernels/canonical.h"
#include "kernels/ordered.h"
#include "kernels/packet.h"

namespace gyre::kernels {
namespace {

/// `which`: of the type's and operation's, in words.
Status load(DataType type, ReduceOp op, const void* kernel, const std::string& which) {
  cudaFuncAttributes attributes;
  const cudaError_t error = cudaFuncGetAttributes(&attributes, kernel);
  if (error == cudaSuccess) return {};
  cudaGetLastError();  // so that no later call reports it
  const bool may_lack = !is_integer(type) && size_of(type) == 1;
  if (may_lack && (error == cudaErrorNoKernelImageForDevice || error == cudaErrorInvalidDeviceFunction)) return {};
  return Error{Code::cuda, "the kernel of " + std::string(name(type)) + " " + std::string(name(op)) + ", " + which +
                               ", can't be loaded: " + cudaGetErrorString(error)};
}

}  // namespace

Status load_step_kernels() {
  for (DataType type : all_data_types()) {
    for (size_t i = 0; i < every_reduce_op_count; ++i) {
      const auto op = static_cast<ReduceOp>(i);
      for (size_t shape = 0; shape < shape_count; ++shape) {
        const auto* kernel = reinterpret_cast<const void*>(step_kernel_of(type, op, static_cast<Shape>(shape)));
        GYRE_TRY(load(type, op, kernel, "shape " + std::to_string(shape)));
      }
      GYRE_TRY(load(type, op, reinterpret_cast<const void*>(stay_kernel_of(type, op)), "that stays"));
      GYRE_TRY(load(type, op, reinterpret_cast<const void*>(packet_kernel_of(type, op)), "of packets"));
    }
    if (partial_size(type) == size_of(type)) continue;
    for (const ReduceOp op : {ReduceOp::sum, ReduceOp::prod}) {
      GYRE_TRY(load(type, op, reinterpret_cast<const void*>(ordered_kernel_of(type, op)), "in ordered numerics"));
      GYRE_TRY(load(type, op, reinterpret_cast<const void*>(ordered_stay_kernel_of(type, op)), "that stays in ordered numerics"));
    }
  }
  return {};
}

}  // namespace gyre::kernels
