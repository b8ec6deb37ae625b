#include "engine/copy_trial.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "engine/wait.h"
#include "kernels/reduce_host.h"

namespace gyre::engine {

/// On the board, of the rank that writes; zeros at first. Messages are numbered from 1.
struct CopyTrial::Area {
  alignas(64) std::atomic<uint64_t> written;
  uint64_t source;  // where the writer's own bytes lie
  alignas(64) std::atomic<uint64_t> read;
  std::atomic<bool> unreadable;  // where they lie
  alignas(64) std::byte data[64 << 10];
};

namespace {

enum Way : uint8_t { in_caches, past_caches, straight };
constexpr uint64_t ways = 3, of_each = 6;
constexpr uint64_t unmeasured = 2;  // they move what the caches held before
// What is less is within what differs from trial to trial. Where both ways of a message take as long, it goes past the caches: least is
// lost there when ranks are moved apart later.
constexpr double as_long = 1.2;
// A block may be there a little later straight than by a message: the trial's is small and has just been written; larger ones gain, and so
// do those that are read again, which are in the reader's cache then (perf/results/2026-11-28-straight).
constexpr double not_much_longer = 1.6;

Way way_of(uint64_t number) { return static_cast<Way>((number - 1) / of_each); }
uint64_t messages(bool may_read) { return (may_read ? ways : ways - 1) * of_each; }

template <class Ready>
bool in_time(Ready ready, std::chrono::steady_clock::time_point end) {
  if (std::chrono::steady_clock::now() > end) return false;
  for (uint64_t looks = 1; !ready(); ++looks) {
    relax_processor();
    if (looks % 64 == 0 && std::chrono::steady_clock::now() > end) return false;
  }
  return true;
}

}  // namespace

std::optional<CopyTrial::Found> CopyTrial::run(const transport::Board& board, std::chrono::microseconds patience) {
  static_assert(sizeof(Area) <= transport::Board::slots * transport::Board::slot_bytes);
  const Rank before = (rank_ + board.ranks() - 1) % board.ranks();
  if (before == rank_) return {};
  own_.resize(sizeof(Area::data));
  const auto area = [&](Rank rank) -> Area& { return *reinterpret_cast<Area*>(board.all_slots(rank)); };
  const bool may_read = !board.attached().empty();
  std::optional<Found> found;
  for (const bool writes : {rank_ % 2 == 0, rank_ % 2 != 0}) {  // one of two neighbours begins
    const Clock::time_point end = Clock::now() + patience;
    if (writes)
      found = write(area(rank_), may_read, end);
    else
      read(area(before), may_read ? &board.attached()[static_cast<size_t>(before)] : nullptr, end);
  }
  return found;
}

std::optional<CopyTrial::Found> CopyTrial::write(Area& area, bool may_read, Clock::time_point end) {
  std::array<double, ways> least{1e9, 1e9, 1e9};  // seconds
  area.source = reinterpret_cast<uintptr_t>(own_.data());
  for (uint64_t number = 1; number <= messages(may_read); ++number) {
    const Way way = way_of(number);
    std::memset(own_.data(), static_cast<int>(number),
                own_.size());  // as a program has just computed it: here, and not where it was read last
    const Clock::time_point begin = Clock::now();
    if (way == in_caches) kernels::copy(area.data, own_.data(), own_.size());
    if (way == past_caches) kernels::copy_away(area.data, own_.data(), own_.size());
    kernels::fence_away();
    area.written.store(number, std::memory_order_release);
    if (!in_time([&] { return area.read.load(std::memory_order_acquire) == number; }, end)) return {};
    const double taken = std::chrono::duration<double>(Clock::now() - begin).count();
    if ((number - 1) % of_each >= unmeasured) least[way] = std::min(least[way], taken);
  }
  const double message = std::min(least[in_caches], least[past_caches]);
  const bool readable = may_read && !area.unreadable.load(std::memory_order_relaxed);
  return Found{least[in_caches] * as_long < least[past_caches], readable && least[straight] < message * not_much_longer};
}

void CopyTrial::read(Area& area, const transport::Attached* process, Clock::time_point end) {
  for (uint64_t number = 1; number <= messages(process != nullptr); ++number) {
    if (!in_time([&] { return area.written.load(std::memory_order_acquire) == number; }, end)) return;
    if (way_of(number) != straight)
      kernels::copy(own_.data(), area.data, own_.size());
    else if (process == nullptr || !process->read(own_.data(), area.source, own_.size()))
      area.unreadable.store(true, std::memory_order_relaxed);
    area.read.store(number, std::memory_order_release);
  }
}

}  // namespace gyre::engine
