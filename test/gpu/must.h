// What fails on the GPU ends the test, in CUDA's words.
#pragma once
#include <cuda_runtime_api.h>

#include <string>

#include "test/must.h"

namespace gyre::test {

inline void must(cudaError_t error) {
  if (error != cudaSuccess) throw std::runtime_error(std::string("CUDA: ") + cudaGetErrorString(error));
}

}  // namespace gyre::test
