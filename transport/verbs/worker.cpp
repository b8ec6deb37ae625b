#include "transport/verbs/worker.h"

#include <fmt/format.h>

#include <utility>

#include "base/log.h"

namespace gyre::transport {

Result<std::unique_ptr<Worker>> open_verbs_worker(Slots slots, const VerbsWay& way) { return verbs::VerbsWorker::open(slots, way); }

namespace verbs {

Result<std::unique_ptr<Worker>> VerbsWorker::open(Slots slots, const VerbsWay& way) {
  if (way.ports.empty() || way.ports.size() > max_rails)
    return Error{Code::invalid_argument, fmt::format("a connection has 1 to {} ports, not {}", max_rails, way.ports.size())};
  auto worker = std::make_unique<VerbsWorker>(slots, way);
  const auto options = GYRE_TRY(PathOptions::from_environment());
  worker->pairs_ = options.pairs;
  for (const auto& port : way.ports) {
    worker->opened_.push_back(GYRE_TRY(Rail::open(port.device, port.number, options, way.sysfs)));
    worker->rails_.push_back(worker->opened_.back().get());
  }
  worker->registrations_.emplace(worker->rails(), way.pinned_bytes);
  worker->flushes_.emplace(worker->rails());
  GYRE_TRY(worker->open_fallback());
  return std::unique_ptr<Worker>(std::move(worker));
}

Result<std::unique_ptr<Memory>> VerbsWorker::register_memory(std::span<std::byte> region, MemoryKind kind) {
  return registrations_->add({region, kind});
}

Result<std::unique_ptr<Memory>> VerbsWorker::register_dmabuf(std::span<std::byte> region, const DmaBuf& dmabuf) {
  return registrations_->add({region, MemoryKind::cuda, dmabuf});
}

Status VerbsWorker::moves_gpu_memory() const {
  if (fallback_) return Error{Code::invalid_usage, "GYRE_FALLBACK=tcp: what carries on moves memory of the host only"};
  return {};
}

Result<Request*> VerbsWorker::flush(const Memory& memory, const std::byte* data) {
  const auto& registered = static_cast<const Registered&>(memory);
  if (registered.kind() == MemoryKind::host || registered.bytes().empty()) return nullptr;
  return flushes_->start(registered, data);
}

std::string VerbsWorker::describe_rails() const {
  std::string all;
  for (const Rail* rail : rails_) all += (all.empty() ? "" : ", ") + rail->describe();
  return all;
}

Offer VerbsWorker::offer() const {
  return {slots_.bytes, slots_.credits, static_cast<uint32_t>(rails_.size()), pairs_, way_.confirm ? 1U : 0U};
}

// Connections that are made or closed are heard each time; others say one word in their life, and a look at them is a system call.
unsigned VerbsWorker::progress() {
  constexpr uint32_t calls_between_looks = 4096;
  unsigned moved = poll(rails_) + flushes_->progress();
  if (fallback_) [[unlikely]]
    moved += progress_fallback();
  if (++calls_ % calls_between_looks == 0) [[unlikely]] {
    hear_devices();
    for (VerbsEndpoint* endpoint : endpoints_) endpoint->look();
  }
  if (noted_) [[unlikely]] {
    noted_ = false;
    // What a device says of its end is heard before the peer is told what has arrived.
    if (std::any_of(endpoints_.begin(), endpoints_.end(), [](VerbsEndpoint* one) { return one->has_news(); })) hear_devices();
    for (VerbsEndpoint* endpoint : endpoints_) endpoint->look_at_link();
  }
  if (!unsettled_.empty()) [[unlikely]]
    see_to_unsettled();
  return moved;
}

void VerbsWorker::see_to_unsettled() {
  for (VerbsEndpoint* endpoint : unsettled_) {
    endpoint->look();
    if (endpoint->closing()) (void)endpoint->closed();
  }
  std::erase_if(unsettled_, [](const VerbsEndpoint* endpoint) { return endpoint->settled(); });
}

void VerbsWorker::hear_devices() {
  using Kind = RailEvent::Kind;
  for (Rail* rail : rails_) {
    for (const RailEvent& event : rail->events()) {
      const Error told{Code::system, words(event, rail->name())};
      event.kind == Kind::port_up ? log::info("{}", told.what) : log::warn("{}", told.what);
      for (VerbsEndpoint* endpoint : endpoints_) {
        Link* link = endpoint->link();
        if (!link) continue;
        if (event.kind == Kind::port_up) link->retry_at_once();
        // A port that is down may be up again before the retries end: alone, it is worth waiting for.
        if (event.kind == Kind::port_down && link->has_others(*rail)) link->lose(*rail, std::nullopt, told);
        if (event.kind == Kind::device_fatal) link->lose_device(*rail, told);
        if (event.kind == Kind::pair_failed) link->lose(*rail, event.pair, told);
      }
      noted_ = true;
    }
  }
}

void VerbsWorker::drain() {
  while (poll(rails_) > 0) {
  }
}

}  // namespace verbs
}  // namespace gyre::transport
