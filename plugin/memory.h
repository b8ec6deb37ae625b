// Registered memory, counted: the same range registered again, by whichever connection of a group, is the same registration, and ends
// when it has been given back as often. NCCL registers one buffer for many connections. Nothing is kept longer, so no registration can
// outlive its memory. Used from any thread; slow registrations keep nobody from sending.
#pragma once
#include <map>
#include <memory>
#include <mutex>
#include <tuple>

#include "plugin/net.h"
#include "transport/transport.h"

namespace gyre::plugin {

struct MemoryKey {
  const transport::Worker* worker;
  const std::byte* data;
  size_t bytes;
  MemoryKind kind;
  auto operator<=>(const MemoryKey&) const = default;  // NOLINT(modernize-use-nullptr): clang-tidy 14 takes its 0 for a pointer
};

class Memory {
 public:
  Memory(MemoryKey k, std::unique_ptr<transport::Memory> r) : key(k), registration(std::move(r)) {}
  const MemoryKey key;
  std::unique_ptr<transport::Memory> registration;
  uint64_t count = 1;
};

class MemoryCache {
 public:
  Result<Memory*> add(transport::Worker&, void* data, size_t bytes, MemoryKind, const transport::DmaBuf* = nullptr);
  /// An error: it is not registered here (any more).
  Status give_back(Memory*);
  size_t size();

 private:
  std::mutex mutex_;
  std::map<MemoryKey, std::unique_ptr<Memory>> all_;
};

}  // namespace gyre::plugin
