#include "engine/device_replays.h"

#include <algorithm>
#include <new>
#include <utility>

#include "kernels/mem.h"

namespace gyre::engine {

using kernels::ReplayDoor;
using kernels::ReplaySlot;

void StayLane::close_items() {
  for (kernels::StayItem& item : items) item.ticket = kernels::all_tickets;  // none
}

uint64_t StayLane::ended(unsigned blocks) const {
  uint64_t least = UINT64_MAX;
  for (unsigned block = 0; block < blocks; ++block) least = std::min(least, kernels::load_acquire(&block_ended[block].value));
  return least;
}

Result<std::shared_ptr<DeviceReplays>> DeviceReplays::open(kernels::Gpu& gpu, unsigned blocks) {
  std::shared_ptr<DeviceReplays> made(new DeviceReplays(blocks));
  made->memory_ = GYRE_TRY(gpu.allocate_pinned(sizeof(Shared)));
  made->shared_ = new (made->memory_.get()) Shared{};
  made->shared_->lane.close_items();
  made->grow(GYRE_TRY(made->more_places(gpu)));
  return made;
}

Result<DeviceReplays::Slab> DeviceReplays::more_places(kernels::Gpu& gpu) const {
  const size_t more = std::max(first_places, slots_.size());
  Slab slab{GYRE_TRY(gpu.allocate_pinned(more * sizeof(ReplaySlot))), more};
  return slab;
}

void DeviceReplays::grow(Slab slab) {
  auto* const slots = new (slab.memory.get()) ReplaySlot[slab.places]{};
  slabs_.push_back(std::move(slab.memory));
  for (size_t i = slab.places; i > 0; --i) free_.push_back(slots + i - 1);
  for (size_t i = 0; i < slab.places; ++i) slots_.push_back(slots + i);
}

DeviceReplays::Place DeviceReplays::take() {
  ReplaySlot* const slot = free_.back();
  free_.pop_back();
  return {slot, ++ids_};
}

std::shared_ptr<void> DeviceReplays::holder(const Place& place) {
  const auto let_go = [self = shared_from_this(), id = place.id](void*) {
    const std::lock_guard lock(self->mutex_);
    self->released_.push_back(id);
    self->any_released_.store(true, std::memory_order_release);
  };
  return {static_cast<void*>(place.slot), let_go};
}

std::vector<uint64_t> DeviceReplays::released() {
  if (!any_released_.load(std::memory_order_acquire)) return {};
  const std::lock_guard lock(mutex_);
  any_released_ = false;
  return std::exchange(released_, {});
}

Result<std::optional<uint64_t>> DeviceReplays::begun() const {
  const uint64_t number = latest_at_next();
  if (number > popped_ + 1) return Error{Code::internal, "more collectives of CUDA graphs are under way than a GPU has kernels"};
  return number == popped_ + 1 ? std::optional(next_start().id) : std::nullopt;
}

uint64_t DeviceReplays::assign(const Place& place, uint64_t tickets) {
  place.slot->first = std::exchange(tickets_, tickets_ + tickets);
  kernels::store_release(&place.slot->assigned, place.slot->assigned + 1);
  return place.slot->first;
}

// Who passes the gate without an item asks for the state.
void DeviceReplays::close(ReplayDoor::State state) {
  kernels::store_release(&shared_->door.state, state);
  kernels::store_release(&shared_->lane.gate, kernels::all_tickets);
}

bool DeviceReplays::all_left() const {
  return std::all_of(slots_.begin(), slots_.end(), [this](const ReplaySlot* slot) {
    return std::all_of(slot->left, slot->left + blocks_,
                       [&](const uint64_t& left) { return kernels::load_acquire(&left) >= slot->assigned; });
  });
}

}  // namespace gyre::engine
