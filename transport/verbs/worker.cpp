#include "transport/verbs/worker.h"

#include <fmt/format.h>

#include <utility>

namespace gyre::transport {

Result<std::unique_ptr<Worker>> open_verbs_worker(Slots slots, const VerbsWay& way) { return verbs::VerbsWorker::open(slots, way); }

void VerbsWay::take(const Config& config) {
  confirm = *config.ib_confirm != 0;
  fallback_tcp = *config.fallback == "tcp";
  pinned_bytes = *config.pinned_bytes;
}

namespace verbs {

Result<std::unique_ptr<Worker>> VerbsWorker::open(Slots slots, const VerbsWay& way) {
  if (way.ports.empty() || way.ports.size() > max_rails)
    return Error{Code::invalid_argument, fmt::format("a connection has 1 to {} ports, not {}", max_rails, way.ports.size())};
  auto worker = std::make_unique<VerbsWorker>(slots, way);
  const auto options = GYRE_TRY(PathOptions::from_environment());
  worker->paths_per_rail_ = options.pairs;
  for (const auto& port : way.ports) {
    worker->opened_.push_back(GYRE_TRY(Rail::open(port.device, port.number, options, way.sysfs)));
    worker->rails_.push_back(worker->opened_.back().get());
  }
  return std::unique_ptr<Worker>(std::move(worker));
}

Result<std::unique_ptr<Memory>> VerbsWorker::register_memory(std::span<std::byte> region, MemoryKind kind) {
  if (kind != MemoryKind::host) return Error{Code::invalid_usage, "verbs: GPU memory can't be registered"};
  if (region.empty()) return std::make_unique<Memory>();
  return std::unique_ptr<Memory>(GYRE_TRY(Registered::add(rails_, region)));
}

// Connections that are being made are heard each time; others say one word in their life, and a look at them is a system call.
unsigned VerbsWorker::progress() {
  constexpr uint32_t calls_between_looks = 4096;
  unsigned moved = 0;
  for (const Rail* rail : rails_) moved += poll(*rail);
  const bool all = std::exchange(noted_, false) || ++calls_ % calls_between_looks == 0;
  for (size_t i = 0; i < endpoints_.size(); ++i)
    if (all || !endpoints_[i]->connected()) endpoints_[i]->look();
  return moved;
}

void VerbsWorker::drain() {
  for (const Rail* rail : rails_)
    while (poll(*rail) > 0) {
    }
}

}  // namespace verbs
}  // namespace gyre::transport
