#include "transport/board.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>

namespace gyre::transport {

Result<std::unique_ptr<Board>> Board::create(Rank rank, int ranks, size_t bounce_bytes) {
  std::unique_ptr<Board> board(new Board(rank, ranks, bounce_bytes));
  board->take(rank, GYRE_TRY(SharedMemory::create(bounce_at + bounce_bytes)));
  return board;
}

Status Board::open(Rank peer, std::string_view address) {
  auto memory = GYRE_TRY(SharedMemory::open(address));
  if (memory->bytes() < bounce_at + bounce_bytes_)
    return Error{Code::remote, fmt::format("shm: rank {}'s board has {} bytes", peer, memory->bytes())};
  take(peer, std::move(memory));
  return {};
}

void Board::take(Rank rank, std::unique_ptr<SharedMemory> memory) {
  std::byte* const base = memory->data();
  parts_[static_cast<size_t>(rank)] = {std::move(memory), base};
}

bool Board::all_finished(uint64_t sequence) {
  uint64_t least = UINT64_MAX;  // where there are no others
  for (Rank peer = 0; peer < ranks(); ++peer) {
    if (peer == rank_) continue;
    if (!finished(peer, sequence)) return false;
    least = std::min(least, parts_[static_cast<size_t>(peer)].done);
  }
  done_by_all_ = least;
  return true;
}

}  // namespace gyre::transport
