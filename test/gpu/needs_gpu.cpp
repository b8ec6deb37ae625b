// Ends a test program where there is no GPU, before its first test, as one that is skipped, and says why.
#include <cuda_runtime_api.h>

#include <cstdio>
#include <cstdlib>

namespace {

const bool there_is_a_gpu = [] {
  int devices = 0;
  const cudaError_t error = cudaGetDeviceCount(&devices);
  if (error == cudaSuccess && devices > 0) return true;
  std::printf("skipped: there is no NVIDIA GPU here that CUDA can use (cudaGetDeviceCount: %s)\n", cudaGetErrorString(error));
  std::exit(77);
}();

}  // namespace
