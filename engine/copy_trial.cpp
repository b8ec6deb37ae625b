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
  alignas(64) std::atomic<uint64_t> read;
  alignas(64) std::byte data[64 << 10];
};

namespace {

enum Way : uint8_t { in_caches, past_caches };
// So many that the least differs little from trial to trial, whoever else uses the caches meanwhile.
constexpr uint64_t ways = 2, of_each = 12, messages = ways * of_each;
constexpr uint64_t unmeasured = 2;  // they move what the caches held before
// What is less is within what differs from trial to trial. Where both ways of a message take as long, it goes past the caches: least is
// lost there when ranks are moved apart later.
constexpr double as_long = 1.1;

Way way_of(uint64_t number) { return static_cast<Way>((number - 1) / of_each); }

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

std::optional<CopyTrial::Times> CopyTrial::run(const transport::Board& board, std::chrono::microseconds patience) {
  static_assert(sizeof(Area) <= transport::Board::slots * transport::Board::slot_bytes);
  const Rank before = (rank_ + board.ranks() - 1) % board.ranks();
  if (before == rank_) return {};
  own_.resize(sizeof(Area::data));
  const auto area = [&](Rank rank) -> Area& { return *reinterpret_cast<Area*>(board.all_slots(rank)); };
  std::optional<Times> found;
  for (const bool writes : {rank_ % 2 == 0, rank_ % 2 != 0}) {  // one of two neighbours begins
    const Clock::time_point end = Clock::now() + patience;
    if (writes)
      found = write(area(rank_), end);
    else
      read(area(before), end);
  }
  return found;
}

// Of all, since one rank's neighbour may have been held up.
bool CopyTrial::favours_caches(std::span<const Times> by_rank) {
  Times all;
  for (const Times& one : by_rank) all.in_caches += one.in_caches, all.past_caches += one.past_caches;
  return all.in_caches * as_long < all.past_caches;
}

std::optional<CopyTrial::Times> CopyTrial::write(Area& area, Clock::time_point end) {
  std::array<double, ways> least{1e9, 1e9};  // seconds
  for (uint64_t number = 1; number <= messages; ++number) {
    const Way way = way_of(number);
    std::memset(own_.data(), static_cast<int>(number),
                own_.size());  // as a program has just computed it: here, and not where it was read last
    const Clock::time_point begin = Clock::now();
    (way == in_caches ? kernels::copy : kernels::copy_away)(area.data, own_.data(), own_.size());
    kernels::fence_away();
    area.written.store(number, std::memory_order_release);
    if (!in_time([&] { return area.read.load(std::memory_order_acquire) == number; }, end)) return {};
    const double taken = std::chrono::duration<double>(Clock::now() - begin).count();
    if ((number - 1) % of_each >= unmeasured) least[way] = std::min(least[way], taken);
  }
  return Times{least[in_caches], least[past_caches]};
}

void CopyTrial::read(Area& area, Clock::time_point end) {
  for (uint64_t number = 1; number <= messages; ++number) {
    if (!in_time([&] { return area.written.load(std::memory_order_acquire) == number; }, end)) return;
    kernels::copy(own_.data(), area.data, own_.size());
    area.read.store(number, std::memory_order_release);
  }
}

}  // namespace gyre::engine
