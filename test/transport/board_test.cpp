#include "transport/board.h"

#include <algorithm>
#include <cstring>
#include <set>
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
  Board::Line* line = boards[2]->line(1, 2000);
  REQUIRE(line != nullptr);
  std::strcpy(reinterpret_cast<char*>(line->data), "short");
  std::strcpy(reinterpret_cast<char*>(boards[2]->beside(2, 1, 2000)), "long");
  boards[2]->publish(1, 77);
  for (const Rank rank : {0, 1}) {
    const Board::Line* shown = boards[static_cast<size_t>(rank)]->arrived(2, 1);
    REQUIRE(shown != nullptr);
    CHECK(shown->word == 77);
    CHECK(std::strcmp(reinterpret_cast<const char*>(shown->data), "short") == 0);
    CHECK(std::strcmp(reinterpret_cast<const char*>(boards[static_cast<size_t>(rank)]->beside(2, 1, 2000)), "long") == 0);
    CHECK(boards[static_cast<size_t>(rank)]->arrived(2, 2) == nullptr);
  }
}

TEST_CASE("a line and a slot are free again when every rank is done with the call that had them") {
  for (const size_t bytes : {size_t{8}, Board::room_bytes, Board::room_bytes + 1, Board::slot_bytes}) {
    const uint64_t ahead = bytes <= Board::room_bytes ? Board::lines : Board::slots;
    auto boards = joined(3);
    for (uint64_t call = 1; call <= ahead; ++call) {
      REQUIRE(boards[0]->line(call, bytes) != nullptr);
      boards[0]->publish(call, call);
      boards[0]->finish(call);
    }
    CHECK(boards[0]->line(ahead + 1, bytes) == nullptr);
    boards[1]->finish(1);
    CHECK(boards[0]->line(ahead + 1, bytes) == nullptr);
    boards[2]->finish(1);
    CHECK(boards[0]->line(ahead + 1, bytes) != nullptr);
    CHECK(boards[0]->line(ahead + 2, bytes) == nullptr);
    // Who shows a call is done with those before.
    for (const size_t rank : std::initializer_list<size_t>{1, 2}) {
      REQUIRE(boards[rank]->line(3, bytes) != nullptr);
      boards[rank]->publish(3, 3);
      REQUIRE(boards[0]->arrived(static_cast<Rank>(rank), 3) != nullptr);
    }
    CHECK(boards[0]->line(ahead + 2, bytes) != nullptr);
  }
}

TEST_CASE("that a rank is done with small staged calls is told every eighth time, and in time for who waits for room") {
  auto boards = joined(2);
  for (uint64_t call = 1; call < 4 * Board::lines; ++call) {
    const size_t bytes = call % 3 == 0 ? Board::slot_bytes : Board::room_bytes;
    // Rank 1 is done with all before, and has said no more of small ones.
    REQUIRE(boards[0]->line(call, bytes) != nullptr);
    REQUIRE(boards[0]->line(call, Board::slot_bytes) != nullptr);
    boards[1]->finish_staged(call, bytes);
    CHECK(boards[0]->finished(1, call) == (call % 3 == 0 || call % Board::told_every == 0));
  }
}

TEST_CASE("a line is free when the last of all is done with it, however far the others are") {
  for (const auto& [quick, slow] : {std::pair<size_t, size_t>{1, 2}, {2, 1}}) {
    auto boards = joined(3);
    boards[quick]->finish(5);
    boards[slow]->finish(1);
    CHECK(boards[0]->line(Board::lines + 1, 8) != nullptr);
    CHECK(boards[0]->line(Board::lines + 2, 8) == nullptr);
    boards[slow]->finish(3);
    CHECK(boards[0]->line(Board::lines + 3, 8) != nullptr);
    CHECK(boards[0]->line(Board::lines + 2, 8) != nullptr);
    CHECK(boards[0]->line(Board::lines + 4, 8) == nullptr);
  }
}

TEST_CASE("what is shown beside a line overlaps no other line and no other slot") {
  auto boards = joined(2);
  std::set<std::byte*> rooms, slots;
  for (uint64_t call = 1; call <= Board::lines; ++call) rooms.insert(boards[0]->beside(0, call, Board::room_bytes));
  for (uint64_t call = 1; call <= Board::slots; ++call) slots.insert(boards[0]->beside(0, call, Board::slot_bytes));
  CHECK(rooms.size() == Board::lines);
  CHECK(slots.size() == Board::slots);
  CHECK(*rooms.rbegin() + Board::room_bytes <= *slots.begin());
  for (auto room = rooms.begin(); std::next(room) != rooms.end(); ++room) {
    CHECK(*std::next(room) - *room == static_cast<ptrdiff_t>(sizeof(Board::Line) + Board::room_bytes));
  }
}

TEST_CASE("what a board shows is never overwritten while somebody reads it") {
  for (const size_t bytes : {size_t{320}, size_t{3200}}) {
    auto boards = joined(2);
    constexpr uint64_t calls = 2000;
    uint64_t wrong = 0;
    std::thread reader([&] {
      for (uint64_t call = 1; call <= calls; ++call) {
        while (boards[1]->arrived(0, call) == nullptr) std::this_thread::yield();
        uint64_t values[40];
        std::memcpy(values, boards[1]->beside(0, call, bytes), sizeof values);
        for (const uint64_t value : values) wrong += value == call ? 0 : 1;
        boards[1]->finish(call);
      }
    });
    for (uint64_t call = 1; call <= calls; ++call) {
      while (boards[0]->line(call, bytes) == nullptr) std::this_thread::yield();
      uint64_t values[40];
      for (uint64_t& value : values) value = call;
      std::memcpy(boards[0]->beside(0, call, bytes), values, sizeof values);
      boards[0]->publish(call, 0);
      boards[0]->finish(call);
    }
    reader.join();
    CHECK(wrong == 0);
  }
}

TEST_CASE("what is claimed for a call to come stays as it was shown until it is written") {
  auto boards = joined(2);
  for (uint64_t call = 1; call <= Board::lines; ++call) {
    std::memset(boards[0]->beside(0, call, Board::room_bytes), static_cast<int>(call), Board::room_bytes);
    boards[0]->publish(call, call);
  }
  for (const size_t bytes : {size_t{0}, Board::line_bytes, Board::line_bytes + 1, Board::room_bytes, Board::slot_bytes}) {
    for (uint64_t call = Board::lines; call <= 2 * Board::lines; ++call) boards[0]->claim(call, bytes);
  }
  for (uint64_t call = 1; call <= Board::lines; ++call) {
    REQUIRE(boards[1]->arrived(0, call) != nullptr);
    CHECK(boards[1]->arrived(0, call)->word == call);
    const std::byte* beside = boards[1]->beside(0, call, Board::room_bytes);
    CHECK(std::all_of(beside, beside + Board::room_bytes, [&](std::byte b) { return b == static_cast<std::byte>(call); }));
  }
}

TEST_CASE("a board of another size is refused") {
  auto board = *Board::create(0, 2);
  const auto small = transport::SharedMemory::create(4096);
  REQUIRE(small);
  const Status status = board->open(1, (*small)->address());
  REQUIRE(!status);
  CHECK(status.error().what == "shm: rank 1's board has 4096 bytes");
}
