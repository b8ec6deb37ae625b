// Where tests run step kernels: on the host's threads (test/simt/step_runner.cpp) or on a GPU (test/gpu/step_runner.cpp). One of them is
// linked, and the tests don't know which.
#pragma once
#include <cstddef>
#include <vector>

#include "kernels/packet.h"

namespace gyre::test {

/// Returns when the kernel has ended.
void run_step(kernels::StepKernel, const kernels::StepArgs&);
void run_stay(kernels::StayKernel, const kernels::StayArgs&);
void run_packets(kernels::PacketKernel, const kernels::PacketArgs&);
/// So many blocks each of them has.
unsigned step_runner_blocks();

/// Memory that host and kernels reach at the same address.
void* allocate_shared(size_t bytes);
void free_shared(void*, size_t bytes);

template <class T>
struct SharedAllocator {
  using value_type = T;
  SharedAllocator() = default;
  template <class U>
  SharedAllocator(const SharedAllocator<U>&) {}  // NOLINT(google-explicit-constructor): an allocator's rebinding
  T* allocate(size_t n) { return static_cast<T*>(allocate_shared(n * sizeof(T))); }
  void deallocate(T* memory, size_t n) { free_shared(memory, n * sizeof(T)); }
  bool operator==(const SharedAllocator&) const { return true; }
};
template <class T>
using SharedVector = std::vector<T, SharedAllocator<T>>;

}  // namespace gyre::test
