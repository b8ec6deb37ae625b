#include "transport/board.h"

#include <fmt/format.h>

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

Board::Line* Board::line(uint64_t sequence, size_t bytes) {
  const uint32_t before = bytes <= room_bytes ? lines : slots;
  if (sequence > before) {
    for (Rank peer = 0; peer < ranks(); ++peer) {
      if (peer != rank_ && !finished(peer, sequence - before)) return nullptr;
    }
  }
  return &at(rank_, sequence);
}

}  // namespace gyre::transport
