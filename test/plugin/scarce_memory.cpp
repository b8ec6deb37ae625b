#include "test/plugin/scarce_memory.h"

#include <cstdlib>
#include <new>

namespace gyre::test {

std::atomic<bool> none_left{false};
std::atomic<size_t> refused_bytes{0};

}  // namespace gyre::test

using gyre::test::none_left;
using gyre::test::refused_bytes;

// Not inlined: next to the library's, g++ would take them for a mismatched pair.
[[gnu::noinline]] void* operator new(size_t bytes) {
  void* memory = none_left || (bytes != 0 && bytes == refused_bytes) ? nullptr : std::malloc(bytes);
  if (memory != nullptr) return memory;
  throw std::bad_alloc();
}
[[gnu::noinline]] void* operator new[](size_t bytes) { return operator new(bytes); }
[[gnu::noinline]] void* operator new(size_t bytes, const std::nothrow_t&) noexcept { return std::malloc(bytes); }
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, size_t) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, const std::nothrow_t&) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete[](void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete[](void* memory, size_t) noexcept { std::free(memory); }
