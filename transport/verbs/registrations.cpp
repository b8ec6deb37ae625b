#include "transport/verbs/registrations.h"

#include <fmt/format.h>

#include <algorithm>

namespace gyre::transport::verbs {

const Registered* Registrations::holder_of(const Range& range) const {
  const auto* end = range.bytes.data() + range.bytes.size();
  const auto found = std::find_if(held_.begin(), held_.upper_bound(range.bytes.data()), [&](const auto& entry) {
    const Registered& held = *entry.second;
    return held.kind() == range.kind && held.bytes().data() + held.bytes().size() >= end;
  });
  return found == held_.upper_bound(range.bytes.data()) ? nullptr : found->second;
}

Result<std::unique_ptr<Memory>> Registrations::add(const Range& range) {
  if (range.bytes.empty()) return std::unique_ptr<Memory>(std::make_unique<Registered>(std::make_shared<Registered::Regions>(), range));
  const std::lock_guard lock(mutex_);
  std::unique_ptr<Registered> added;
  if (const Registered* holder = holder_of(range)) {
    added = std::make_unique<Registered>(holder->regions(), range, this);
  } else {
    if (most_bytes_ != 0 && range.bytes.size() > most_bytes_ - std::min(most_bytes_, pinned_))
      return Error{Code::invalid_usage,
                   fmt::format("{} bytes can't be registered: GYRE_PINNED_BYTES={}, and {} bytes in {} registrations are in use",
                               range.bytes.size(), most_bytes_, pinned_, bytes_.size())};
    auto regions = std::make_shared<Registered::Regions>();
    for (size_t i = 0; i < rails_.size(); ++i) {
      auto region = register_range(*rails_[i], range);
      if (!region)
        return Error{region.error().code,
                     fmt::format("{}; {} bytes in {} registrations are in use", region.error().what, pinned_, bytes_.size())};
      (*regions)[i] = *std::move(region);
    }
    bytes_[regions.get()] = range.bytes.size();
    pinned_ += range.bytes.size();
    added = std::make_unique<Registered>(std::move(regions), range, this);
  }
  held_.emplace(range.bytes.data(), added.get());
  return std::unique_ptr<Memory>(std::move(added));
}

void Registrations::remove(const Registered& memory) {
  const std::lock_guard lock(mutex_);
  const auto [begin, end] = held_.equal_range(memory.bytes().data());
  held_.erase(std::find_if(begin, end, [&](const auto& entry) { return entry.second == &memory; }));
  const auto* regions = memory.regions().get();
  const bool shared = std::any_of(held_.begin(), held_.end(), [&](const auto& entry) { return entry.second->regions().get() == regions; });
  if (shared) return;
  pinned_ -= bytes_.at(regions);
  bytes_.erase(regions);
}

Registrations::Pinned Registrations::pinned() {
  const std::lock_guard lock(mutex_);
  return {pinned_, bytes_.size()};
}

}  // namespace gyre::transport::verbs
