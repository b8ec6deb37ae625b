#include "engine/direct_memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace gyre::engine {

uint64_t DirectMemory::segment(const void* data, size_t bytes) {
  const auto* found = heap_.find(data, bytes);
  return found != nullptr ? found->number : 0;
}

bool DirectMemory::tell(uint64_t a, uint64_t b, HeapNews& news) {
  const auto& heap = transport::SharedHeap::of_process();
  news.added_count = 0;
  for (const uint64_t number : {a, b}) {
    if (number == 0 || told_.has(number)) continue;
    const auto segment = heap.segment(number);
    if (!segment) continue;
    HeapNews::New& added = news.added[news.added_count++];
    added.segment = number;
    added.begin = reinterpret_cast<uintptr_t>(segment->begin);
    const std::string address = heap.address(number);
    added.address[address.copy(added.address, sizeof added.address - 1)] = 0;
    told_.add(number);
  }
  news.gone_count = static_cast<uint32_t>(told_.gone(news.gone));
  return news.added_count != 0 || news.gone_count != 0;
}

void DirectMemory::hear(Rank peer, const HeapNews& news) {
  auto& known = peers_[static_cast<size_t>(peer)];
  for (uint32_t i = 0; i < std::min<size_t>(news.gone_count, HeapNews::most); ++i) known.erase(news.gone[i]);
  for (uint32_t i = 0; i < std::min<size_t>(news.added_count, HeapNews::most); ++i) {
    const HeapNews::New& added = news.added[i];
    known[added.segment] = {added.begin, {added.address, strnlen(added.address, sizeof added.address)}, nullptr};
  }
}

Result<std::byte*> DirectMemory::at(Rank peer, uint64_t segment, uint64_t address, size_t bytes) {
  auto& known = peers_[static_cast<size_t>(peer)];
  const auto found = known.find(segment);
  if (found == known.end()) return Error{Code::remote, fmt::format("rank {} shows memory that it did not tell of", peer)};
  auto& [begin, name, memory] = found->second;
  if (memory == nullptr) {
    auto opened = transport::SharedMemory::open(name);
    if (!opened) return Error{opened.error().code, fmt::format("rank {}'s memory: {}", peer, opened.error().what)};
    memory = *std::move(opened);
  }
  const uint64_t offset = address - begin;
  if (offset > memory->bytes() || bytes > memory->bytes() - offset) {
    return Error{Code::remote, fmt::format("rank {} shows {} bytes from {} of {} in its memory", peer, bytes, offset, memory->bytes())};
  }
  return memory->data() + offset;
}

}  // namespace gyre::engine
