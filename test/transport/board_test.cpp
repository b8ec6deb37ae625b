#include "transport/board.h"

#include <cstring>
#include <thread>

#include "test/catch.h"

using namespace gyre;
using transport::Board;

namespace {

std::vector<std::unique_ptr<Board>> joined(int ranks) {
  std::vector<std::unique_ptr<Board>> boards;
  for (Rank rank = 0; rank < ranks; ++rank) boards.push_back(*Board::create(rank, ranks));
  for (Rank rank = 0; rank < ranks; ++rank) {
    for (Rank peer = 0; peer < ranks; ++peer) {
      if (peer != rank) REQUIRE(boards[static_cast<size_t>(rank)]->open(peer, boards[static_cast<size_t>(peer)]->address()));
    }
  }
  return boards;
}

}  // namespace

TEST_CASE("what a rank shows arrives at all others, with its word") {
  auto boards = joined(3);
  CHECK(boards[0]->arrived(2, 1) == nullptr);
  Board::Line* line = boards[2]->slot(1);
  REQUIRE(line != nullptr);
  std::strcpy(reinterpret_cast<char*>(line->data), "short");
  std::strcpy(reinterpret_cast<char*>(Board::behind(*line)), "long");
  boards[2]->publish(1, 77);
  for (const Rank rank : {0, 1}) {
    const Board::Line* shown = boards[static_cast<size_t>(rank)]->arrived(2, 1);
    REQUIRE(shown != nullptr);
    CHECK(shown->word == 77);
    CHECK(std::strcmp(reinterpret_cast<const char*>(shown->data), "short") == 0);
    CHECK(std::strcmp(reinterpret_cast<const char*>(Board::behind(*shown)), "long") == 0);
    CHECK(boards[static_cast<size_t>(rank)]->arrived(2, 2) == nullptr);
  }
}

TEST_CASE("a slot is free again when every rank is done with the call that it was for") {
  auto boards = joined(3);
  for (uint64_t call = 1; call <= Board::slots; ++call) {
    REQUIRE(boards[0]->slot(call) != nullptr);
    boards[0]->publish(call, call);
    boards[0]->finish(call);
  }
  CHECK(boards[0]->slot(Board::slots + 1) == nullptr);
  boards[1]->finish(1);
  CHECK(boards[0]->slot(Board::slots + 1) == nullptr);
  boards[2]->finish(1);
  CHECK(boards[0]->slot(Board::slots + 1) != nullptr);
  CHECK(boards[0]->slot(Board::slots + 2) == nullptr);
  // Who shows a call is done with those before.
  for (const size_t rank : {1, 2}) {
    REQUIRE(boards[rank]->slot(3) != nullptr);
    boards[rank]->publish(3, 3);
    REQUIRE(boards[0]->arrived(static_cast<Rank>(rank), 3) != nullptr);
  }
  CHECK(boards[0]->slot(Board::slots + 2) != nullptr);
}

TEST_CASE("slots of a board are never overwritten while somebody reads them") {
  auto boards = joined(2);
  constexpr uint64_t calls = 20000;
  uint64_t wrong = 0;
  std::thread reader([&] {
    for (uint64_t call = 1; call <= calls; ++call) {
      const Board::Line* line = nullptr;
      while ((line = boards[1]->arrived(0, call)) == nullptr) std::this_thread::yield();
      uint64_t values[40];
      std::memcpy(values, Board::behind(*line), sizeof values);
      for (const uint64_t value : values) wrong += value == call ? 0 : 1;
      boards[1]->finish(call);
    }
  });
  for (uint64_t call = 1; call <= calls; ++call) {
    Board::Line* line = nullptr;
    while ((line = boards[0]->slot(call)) == nullptr) std::this_thread::yield();
    uint64_t values[40];
    for (uint64_t& value : values) value = call;
    std::memcpy(Board::behind(*line), values, sizeof values);
    boards[0]->publish(call, 0);
    boards[0]->finish(call);
  }
  reader.join();
  CHECK(wrong == 0);
}

TEST_CASE("a board of another size is refused") {
  auto board = *Board::create(0, 2);
  const auto small = transport::SharedMemory::create(4096);
  REQUIRE(small);
  const Status status = board->open(1, (*small)->address());
  REQUIRE(!status);
  CHECK(status.error().what == "shm: rank 1's board has 4096 bytes");
}
