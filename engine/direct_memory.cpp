#include "engine/direct_memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace gyre::engine {

HeapPlace DirectMemory::place(const void* data, size_t bytes) {
  const auto& heap = transport::SharedHeap::of_process();
  if (const uint64_t now = heap.changes(); now != changes_) {
    changes_ = now;
    for (Segment& segment : latest_) segment = {};
  }
  if (changes_ == 0) return {};  // nothing was ever allocated there
  const auto in = [&](const Segment& segment) {
    return HeapPlace{segment.number, static_cast<uint64_t>(static_cast<const std::byte*>(data) - segment.begin)};
  };
  for (const Segment& segment : latest_) {
    if (segment.number != 0 && segment.holds(data, bytes)) return in(segment);
  }
  const auto found = heap.find(data, bytes);
  if (!found) return {};
  latest_[next_latest_] = *found;
  next_latest_ = 1 - next_latest_;
  return in(*found);
}

bool DirectMemory::told(uint64_t segment) const { return std::find(told_.begin(), told_.end(), segment) != told_.end(); }

bool DirectMemory::tell(const HeapPlace& a, const HeapPlace& b, HeapNews& news) {
  const auto& heap = transport::SharedHeap::of_process();
  news.added_count = news.gone_count = 0;
  for (const HeapPlace& place : {a, b}) {
    if (place.segment == 0 || told(place.segment)) continue;
    HeapNews::New& added = news.added[news.added_count++];
    added.segment = place.segment;
    const std::string address = heap.address(place.segment);
    added.address[address.copy(added.address, sizeof added.address - 1)] = 0;
    told_.push_back(place.segment);
  }
  if (news.added_count == 0) return false;
  // What was released since peers have mapped it takes memory until they hear of it.
  std::erase_if(told_, [&](uint64_t segment) {
    if (news.gone_count == HeapNews::most || !heap.address(segment).empty()) return false;
    news.gone[news.gone_count++] = segment;
    return true;
  });
  return true;
}

void DirectMemory::hear(Rank peer, const HeapNews& news) {
  auto& known = peers_[static_cast<size_t>(peer)];
  for (uint32_t i = 0; i < std::min<size_t>(news.gone_count, HeapNews::most); ++i) known.erase(news.gone[i]);
  for (uint32_t i = 0; i < std::min<size_t>(news.added_count, HeapNews::most); ++i) {
    const HeapNews::New& added = news.added[i];
    known[added.segment] = {{added.address, strnlen(added.address, sizeof added.address)}, nullptr};
  }
}

Result<std::byte*> DirectMemory::at(Rank peer, const HeapPlace& place, size_t bytes) {
  auto& known = peers_[static_cast<size_t>(peer)];
  const auto found = known.find(place.segment);
  if (found == known.end()) return Error{Code::remote, fmt::format("rank {} shows memory that it did not tell of", peer)};
  auto& [address, memory] = found->second;
  if (memory == nullptr) {
    auto opened = transport::SharedMemory::open(address);
    if (!opened) return Error{opened.error().code, fmt::format("rank {}'s memory: {}", peer, opened.error().what)};
    memory = *std::move(opened);
  }
  if (place.offset > memory->bytes() || bytes > memory->bytes() - place.offset) {
    return Error{Code::remote,
                 fmt::format("rank {} shows {} bytes of its memory at {}, which has {}", peer, bytes, place.offset, memory->bytes())};
  }
  return memory->data() + place.offset;
}

}  // namespace gyre::engine
