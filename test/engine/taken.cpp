#include "test/engine/taken.h"

#include <malloc.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <new>
#include <string>

namespace {

std::atomic<size_t> now{0}, peak{0};

void* counted(size_t bytes, std::align_val_t alignment) {
  const auto align = static_cast<size_t>(alignment);
  void* memory = std::aligned_alloc(align, (std::max<size_t>(bytes, 1) + align - 1) / align * align);
  if (memory == nullptr) throw std::bad_alloc();
  const size_t all = now += malloc_usable_size(memory);
  size_t most = peak;
  while (most < all && !peak.compare_exchange_weak(most, all)) {
  }
  return memory;
}
void uncounted(void* memory) noexcept {
  if (memory == nullptr) return;
  now -= malloc_usable_size(memory);
  std::free(memory);
}

}  // namespace

void* operator new(size_t bytes, std::align_val_t alignment) { return counted(bytes, alignment); }
void* operator new[](size_t bytes, std::align_val_t alignment) { return counted(bytes, alignment); }
void operator delete(void* memory, std::align_val_t) noexcept { uncounted(memory); }
void operator delete[](void* memory, std::align_val_t) noexcept { uncounted(memory); }
void operator delete(void* memory, size_t, std::align_val_t) noexcept { uncounted(memory); }
void operator delete[](void* memory, size_t, std::align_val_t) noexcept { uncounted(memory); }

namespace gyre::test {

size_t shared_bytes() {
  std::map<unsigned long, size_t> by_inode;
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    if (line.find("/memfd:gyre") == std::string::npos) continue;
    size_t begin = 0, end = 0, offset = 0;
    unsigned long inode = 0;
    if (std::sscanf(line.c_str(), "%zx-%zx %*s %zx %*s %lu", &begin, &end, &offset, &inode) != 4) continue;
    size_t& bytes = by_inode[inode];
    bytes = std::max(bytes, offset + (end - begin));
  }
  size_t all = 0;
  for (const auto& [inode, bytes] : by_inode) all += bytes;
  return all;
}

size_t aligned_bytes() { return now; }
size_t aligned_peak() { return peak; }
void restart_peak() { peak = now.load(); }

}  // namespace gyre::test
