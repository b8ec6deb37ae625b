#include "engine/mapped_board.h"

#include <map>
#include <utility>

#include "kernels/mem.h"

namespace gyre::engine {

std::shared_ptr<MappedBoard> MappedBoard::of(uint64_t key, int ranks) {
  static std::mutex mutex;
  static auto& boards = *new std::map<uint64_t, std::weak_ptr<MappedBoard>>;  // threads may ask while the process ends
  const std::lock_guard lock(mutex);
  std::erase_if(boards, [](const auto& one) { return one.second.expired(); });
  auto board = boards[key].lock();
  if (board == nullptr) boards[key] = board = std::make_shared<MappedBoard>(ranks);
  return board;
}

bool MappedBoard::begin(Rank rank, std::shared_ptr<const uint64_t> ended, uint64_t value) {
  const std::lock_guard lock(mutex_);
  if (!left_) places_[static_cast<size_t>(rank)] = {std::move(ended), value};
  return !left_;
}

void MappedBoard::leave() {
  const std::lock_guard lock(mutex_);
  left_ = true;
}

bool MappedBoard::busy(Rank own) {
  const std::lock_guard lock(mutex_);
  for (Rank rank = 0; rank < static_cast<Rank>(places_.size()); ++rank) {
    const auto& [ended, value] = places_[static_cast<size_t>(rank)];
    if (rank != own && ended != nullptr && kernels::load_acquire(ended.get()) < value) return true;
  }
  return false;
}

}  // namespace gyre::engine
