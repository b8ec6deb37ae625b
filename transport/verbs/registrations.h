// A worker's registrations, counted. NCCL and the engine register parts of what is registered already; those share it, since registering is
// slow and the devices' tables are small. Nothing is kept after its last user has given it back, and only a range that somebody holds now
// is shared: memory that was freed and mapped again can't meet a registration of what was there before. From any thread.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <span>

#include "transport/verbs/registered.h"

namespace gyre::transport::verbs {

class Registrations {
 public:
  /// `most_bytes`: GYRE_PINNED_BYTES, 0: without bound. The rails outlive this, and this outlives what it has registered.
  Registrations(std::span<Rail* const> rails, uint64_t most_bytes) : rails_(rails), most_bytes_(most_bytes) {}
  Registrations(const Registrations&) = delete;
  Registrations& operator=(const Registrations&) = delete;

  /// No bytes are no registration, but something to name. The error says which bound or limit it met, and what is registered.
  Result<std::unique_ptr<Memory>> add(const Range&);

  struct Pinned {
    uint64_t bytes = 0;  ///< once, however many rails
    size_t registrations = 0;
  };
  Pinned pinned();

 private:
  friend class Registered;
  void remove(const Registered&);
  const Registered* holder_of(const Range&) const;

  const std::span<Rail* const> rails_;
  const uint64_t most_bytes_;
  std::mutex mutex_;
  std::multimap<const std::byte*, const Registered*> held_;  // by where they begin
  std::map<const Registered::Regions*, uint64_t> bytes_;     // of the devices' registrations
  uint64_t pinned_ = 0;
};

}  // namespace gyre::transport::verbs
