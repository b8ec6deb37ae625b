#include "plugin/memory.h"

#include <fmt/format.h>

#include <algorithm>

namespace gyre::plugin {

Result<Memory*> MemoryCache::add(transport::Worker& worker, void* data, size_t bytes, MemoryKind kind, const transport::DmaBuf* dmabuf) {
  const MemoryKey key{&worker, static_cast<std::byte*>(data), bytes, kind};
  const std::lock_guard lock(mutex_);
  if (const auto found = all_.find(key); found != all_.end()) {
    ++found->second->count;
    return found->second.get();
  }
  const std::span region(static_cast<std::byte*>(data), bytes);
  auto registration = dmabuf ? GYRE_TRY(worker.register_dmabuf(region, *dmabuf)) : GYRE_TRY(worker.register_memory(region, kind));
  auto& memory = all_[key];
  memory = std::make_unique<Memory>(key, std::move(registration));
  return memory.get();
}

Status MemoryCache::give_back(Memory* memory) {
  const std::lock_guard lock(mutex_);
  const auto found = std::find_if(all_.begin(), all_.end(), [&](const auto& entry) { return entry.second.get() == memory; });
  if (found == all_.end())
    return Error{Code::invalid_argument, fmt::format("{} is no registration of this connection", static_cast<void*>(memory))};
  if (--found->second->count == 0) all_.erase(found);
  return {};
}

size_t MemoryCache::size() {
  const std::lock_guard lock(mutex_);
  return all_.size();
}

}  // namespace gyre::plugin
