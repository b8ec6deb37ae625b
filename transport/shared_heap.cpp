#include "transport/shared_heap.h"

#include <fmt/format.h>

#include <algorithm>

namespace gyre::transport {

SharedHeap& SharedHeap::of_process() {
  static auto& heap = *new SharedHeap;  // never destroyed: threads and static objects may use it to the very end
  return heap;
}

Result<void*> SharedHeap::allocate(size_t bytes) {
  constexpr size_t page = 4096;
  if (bytes > size_t{1} << 46) return Error{Code::invalid_argument, fmt::format("shared heap: {} bytes are too many", bytes)};
  auto memory = GYRE_TRY(SharedMemory::create(std::max(page, (bytes + page - 1) / page * page)));
  std::byte* data = memory->data();
  const std::lock_guard lock(mutex_);
  segments_.emplace(reinterpret_cast<uintptr_t>(data), Owned{++last_, std::move(memory)});
  changes_.fetch_add(1, std::memory_order_release);
  return data;
}

Status SharedHeap::release(void* memory) {
  const std::lock_guard lock(mutex_);
  if (segments_.erase(reinterpret_cast<uintptr_t>(memory)) == 0) {
    return Error{Code::invalid_argument, fmt::format("shared heap: {} was not allocated here, or was released already", memory)};
  }
  changes_.fetch_add(1, std::memory_order_release);
  return {};
}

std::optional<SharedHeap::Segment> SharedHeap::find(const void* data, size_t bytes) const {
  const std::lock_guard lock(mutex_);
  auto after = segments_.upper_bound(reinterpret_cast<uintptr_t>(data));
  if (after == segments_.begin()) return std::nullopt;
  const Segment segment = as_segment(std::prev(after)->second);
  return segment.holds(data, bytes) ? std::optional(segment) : std::nullopt;
}

const SharedHeap::Owned* SharedHeap::numbered(uint64_t number) const {
  for (const auto& [at, owned] : segments_) {
    if (owned.number == number) return &owned;
  }
  return nullptr;
}

std::optional<SharedHeap::Segment> SharedHeap::segment(uint64_t number) const {
  const std::lock_guard lock(mutex_);
  const Owned* owned = numbered(number);
  return owned != nullptr ? std::optional(as_segment(*owned)) : std::nullopt;
}

std::string SharedHeap::address(uint64_t number) const {
  const std::lock_guard lock(mutex_);
  const Owned* owned = numbered(number);
  return owned != nullptr ? owned->memory->address() : "";
}

const SharedHeap::Segment* HeapCache::find(const void* data, size_t bytes) {
  const auto& heap = SharedHeap::of_process();
  if (const uint64_t now = heap.changes(); now != changes_) {
    changes_ = now;
    for (SharedHeap::Segment& segment : latest_) segment = {};
  }
  if (changes_ == 0) return nullptr;  // nothing was ever allocated there
  for (const SharedHeap::Segment& segment : latest_) {
    if (segment.number != 0 && segment.holds(data, bytes)) return &segment;
  }
  const auto found = heap.find(data, bytes);
  if (!found) return nullptr;
  SharedHeap::Segment& latest = latest_[next_];
  latest = *found;
  next_ = (next_ + 1) % std::size(latest_);
  return &latest;
}

bool ToldSegments::has(uint64_t number) const { return std::find(told_.begin(), told_.end(), number) != told_.end(); }

// What was released since peers have mapped it takes memory until they hear of it.
size_t ToldSegments::gone(std::span<uint64_t> numbers) {
  const auto& heap = SharedHeap::of_process();
  const uint64_t now = heap.changes();
  if (now == changes_) return 0;
  size_t count = 0;
  std::erase_if(told_, [&](uint64_t number) {
    if (count == numbers.size() || heap.segment(number)) return false;
    numbers[count++] = number;
    return true;
  });
  if (count < numbers.size()) changes_ = now;  // else more may be gone
  return count;
}

}  // namespace gyre::transport
