// Containers whose elements lie in the shared heap.
#pragma once
#include <cstddef>
#include <vector>

#include "transport/shared_heap.h"

namespace gyre::test {

template <class T>
struct HeapAllocator {
  using value_type = T;
  HeapAllocator() = default;
  template <class U>
  HeapAllocator(const HeapAllocator<U>& /*other*/) {}
  T* allocate(size_t count) { return static_cast<T*>(*transport::SharedHeap::of_process().allocate(count * sizeof(T))); }
  void deallocate(T* memory, size_t /*count*/) { (void)transport::SharedHeap::of_process().release(memory); }
  bool operator==(const HeapAllocator&) const { return true; }
};
template <class T>
using HeapVector = std::vector<T, HeapAllocator<T>>;

}  // namespace gyre::test
