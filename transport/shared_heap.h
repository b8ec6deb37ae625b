// Memory that the other ranks of a host can map: what is allocated here lies in a file of its own, a segment, which peers open when a call
// first names it. One heap per process; a forked child shares it with its parent. Safe from any thread. It must not know: communicators,
// ranks.
#pragma once
#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "transport/shared_memory.h"

namespace gyre::transport {

class SharedHeap {
 public:
  struct Segment {
    uint64_t number = 0;  ///< from 1, never used twice
    std::byte* begin = nullptr;
    size_t bytes = 0;

    bool holds(const void* data, size_t size) const {
      const auto at = reinterpret_cast<uintptr_t>(data) - reinterpret_cast<uintptr_t>(begin);
      return at <= bytes && size <= bytes - at;
    }
  };

  static SharedHeap& of_process();

  /// Zeros, aligned to a page; `bytes` 0 is rounded up. Each allocation costs a file descriptor and a page beside its bytes.
  Result<void*> allocate(size_t bytes);
  /// Error: the pointer is none that allocate() has returned. No collective may be using the memory.
  Status release(void* memory);

  /// The segment in which these bytes lie; none: they are ordinary memory.
  std::optional<Segment> find(const void* data, size_t bytes) const;
  /// The segment of a number; none: it was released.
  std::optional<Segment> segment(uint64_t number) const;
  /// What a peer opens (SharedMemory::open); empty where it was released.
  std::string address(uint64_t number) const;
  /// Grows with every allocation and release: what find() said holds as long as it stays.
  uint64_t changes() const { return changes_.load(std::memory_order_acquire); }

 private:
  struct Owned {
    uint64_t number;
    std::unique_ptr<SharedMemory> memory;
  };

  static Segment as_segment(const Owned& owned) { return {owned.number, owned.memory->data(), owned.memory->bytes()}; }
  const Owned* numbered(uint64_t number) const;

  mutable std::mutex mutex_;
  std::map<uintptr_t, Owned> segments_;  // by address
  uint64_t last_ = 0;
  std::atomic<uint64_t> changes_{0};
};

/// Finds segments of this process's heap, and what it has found takes no lock as long as nothing changes there. Used by one thread.
class HeapCache {
 public:
  /// The segment in which these bytes lie, valid until the next call; null: none.
  const SharedHeap::Segment* find(const void* data, size_t bytes);

 private:
  uint64_t changes_ = 0;  // of the heap, when latest_ was true
  SharedHeap::Segment latest_[4];
  size_t next_ = 0;
};

/// Segments of this process's heap that a peer, or all of some, may have mapped. Used by one thread.
class ToldSegments {
 public:
  bool has(uint64_t number) const;
  void add(uint64_t number) { told_.push_back(number); }
  /// Writes those that were released since, as many as there is room for, and forgets them; the rest comes the next time. How many.
  size_t gone(std::span<uint64_t> numbers);

 private:
  std::vector<uint64_t> told_;
  uint64_t changes_ = 0;  // of the heap, when what is gone was looked for
};

constexpr size_t most_address_bytes = 88;  ///< of what SharedMemory::open() takes, with a zero at the end

}  // namespace gyre::transport
