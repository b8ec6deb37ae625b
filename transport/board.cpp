#include "transport/board.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>

namespace gyre::transport {

Result<std::unique_ptr<Board>> Board::create(Rank rank, int ranks, size_t bounce_bytes) {
  std::unique_ptr<Board> board(new Board(rank, ranks, bounce_bytes));
  board->parts_[static_cast<size_t>(rank)].memory = GYRE_TRY(SharedMemory::create(bounce_at + bounce_bytes));
  return board;
}

Status Board::open(Rank peer, std::string_view address) {
  auto memory = GYRE_TRY(SharedMemory::open(address));
  if (memory->bytes() < bounce_at + bounce_bytes_)
    return Error{Code::remote, fmt::format("shm: rank {}'s board has {} bytes", peer, memory->bytes())};
  parts_[static_cast<size_t>(peer)].memory = std::move(memory);
  return {};
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
