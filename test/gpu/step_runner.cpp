#include "test/kernels/step_runner.h"

#include <cuda_runtime_api.h>

#include <map>

#include "kernels/step.h"
#include "test/gpu/must.h"

namespace gyre::test {
namespace {

constexpr unsigned blocks = 2;

template <class Kernel, class Args>
void run(Kernel kernel, Args args) {
  void* list[] = {&args};
  must(cudaLaunchKernel(reinterpret_cast<const void*>(kernel), dim3(blocks), dim3(kernels::step_threads), list, 0, nullptr));
  must(cudaDeviceSynchronize());
}

/// Pinning takes long, and tests ask for the same sizes again and again.
std::multimap<size_t, void*>& unused() {
  static std::multimap<size_t, void*> memory;
  return memory;
}

}  // namespace

void run_step(kernels::StepKernel kernel, const kernels::StepArgs& args) { run(kernel, args); }
void run_stay(kernels::StayKernel kernel, const kernels::StayArgs& args) { run(kernel, args); }
void run_packets(kernels::PacketKernel kernel, const kernels::PacketArgs& args) { run(kernel, args); }
unsigned step_runner_blocks() { return blocks; }

void* allocate_shared(size_t bytes) {
  if (const auto known = unused().find(bytes); known != unused().end()) {
    void* const memory = known->second;
    unused().erase(known);
    return memory;
  }
  void* memory = nullptr;
  must(cudaHostAlloc(&memory, bytes, cudaHostAllocMapped));
  return memory;
}
void free_shared(void* memory, size_t bytes) { unused().emplace(bytes, memory); }

}  // namespace gyre::test
