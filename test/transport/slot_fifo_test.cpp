#include "transport/slot_fifo.h"

#include <new>
#include <thread>

#include "test/catch.h"
#include "test/mappings.h"
#include "test/transport/fifo_traffic.h"

using namespace gyre;
using namespace gyre::transport;

namespace {

struct PageDelete {
  void operator()(std::byte* p) const { ::operator delete (p, std::align_val_t{SlotRing::page}); }
};

/// Both ends of a connection over memory of this test.
struct RingPair {
  explicit RingPair(Slots slots)
      : bytes(SlotRing::footprint(slots)),
        memory(static_cast<std::byte*>(::operator new (2 * bytes, std::align_val_t{SlotRing::page}))),
        there(memory.get(), slots),
        back(memory.get() + bytes, slots),
        left((std::memset(memory.get(), 0, 2 * bytes), there), back, &failure),
        right(back, there, &failure) {}
  size_t bytes;
  std::unique_ptr<std::byte, PageDelete> memory;
  SlotRing there, back;
  std::optional<Error> failure;
  SlotFifo left, right;
};

struct HeapDelete {
  void operator()(std::byte* p) const { CHECK(SharedHeap::of_process().release(p)); }
};
using HeapBytes = std::unique_ptr<std::byte, HeapDelete>;
HeapBytes heap_bytes(size_t count) { return HeapBytes(static_cast<std::byte*>(*SharedHeap::of_process().allocate(count))); }

std::vector<std::byte> bytes_of(size_t count, int value) { return {count, static_cast<std::byte>(value)}; }

}  // namespace

TEST_CASE("slot fifo: nothing has arrived at the start") {
  RingPair p({4, 4096});
  CHECK(p.left.front().data == nullptr);
  CHECK(p.right.front().data == nullptr);
  CHECK_FALSE(p.left.direct());
}

TEST_CASE("slot fifo: messages of all lengths arrive in order, whole and with their plan, both ways") {
  constexpr size_t slot = 4096;
  RingPair p({16, slot});
  const std::vector<size_t> lengths{0, 1, 39, 40, 41, 64, slot - 1, slot};
  for (size_t i = 0; i < lengths.size(); ++i) {
    REQUIRE(test::send(p.left, i, bytes_of(lengths[i], static_cast<int>(i) + 1)));
    REQUIRE(test::send(p.right, 100 + i, bytes_of(lengths[i], static_cast<int>(i) + 50)));
  }
  for (size_t i = 0; i < lengths.size(); ++i) {
    INFO(lengths[i] << " bytes");
    CHECK(test::is(p.right.front(), i, bytes_of(lengths[i], static_cast<int>(i) + 1)));
    CHECK(test::is(p.left.front(), 100 + i, bytes_of(lengths[i], static_cast<int>(i) + 50)));
    p.right.pop();
    p.left.pop();
  }
  CHECK(p.right.front().data == nullptr);
}

TEST_CASE("slot fifo: up to 40 bytes travel in the line that announces them, more in a slot") {
  RingPair p({4, 4096});
  const auto in_line = [&](const std::byte* data) { return data >= p.memory.get() && data < p.memory.get() + SlotRing::page; };
  for (const size_t bytes : {0U, 1U, 39U, 40U}) CHECK(in_line(p.left.reserve(bytes)));
  for (const size_t bytes : {41U, 4096U}) CHECK_FALSE(in_line(p.left.reserve(bytes)));
  REQUIRE(test::send(p.left, 0, bytes_of(40, 1)));
  REQUIRE(test::send(p.left, 0, bytes_of(41, 1)));
  CHECK(in_line(p.right.front().data));
  p.right.pop();
  CHECK_FALSE(in_line(p.right.front().data));
}

TEST_CASE("slot fifo: a slot begins at a page") {
  RingPair p({3, 4096});
  for (int i = 0; i < 3; ++i) {
    CHECK(reinterpret_cast<uintptr_t>(p.left.reserve(4096)) % SlotRing::page == 0);
    p.left.commit(0, 4096);
  }
}

TEST_CASE("slot fifo: there are as many messages under way as credits, and a popped one gives its credit back") {
  const uint32_t credits = GENERATE(1U, 2U, 3U, 8U);
  RingPair p({credits, 4096});
  for (uint32_t i = 0; i < credits; ++i) REQUIRE(test::send(p.left, i, bytes_of(8, 1)));
  CHECK(p.left.reserve(0) == nullptr);
  CHECK(p.right.front().plan == 0);  // looking gives nothing back
  CHECK(p.left.reserve(0) == nullptr);
  p.right.pop();
  CHECK(p.left.reserve(0) != nullptr);
  REQUIRE(test::send(p.left, credits, bytes_of(8, 1)));
  CHECK(p.left.reserve(0) == nullptr);
  for (uint32_t i = 1; i <= credits; ++i) {
    CHECK(p.right.front().plan == i);
    p.right.pop();
  }
}

TEST_CASE("slot fifo: what is reserved is not sent before it is committed, and may be reserved again") {
  RingPair p({2, 4096});
  std::byte* slot = p.left.reserve(100);
  CHECK(p.right.front().data == nullptr);
  CHECK(p.left.reserve(100) == slot);
}

TEST_CASE("slot fifo: the data of an arrival stays until it is popped") {
  RingPair p({2, 4096});
  REQUIRE(test::send(p.left, 0, bytes_of(100, 1)));
  const Arrival first = p.right.front();
  REQUIRE(test::send(p.left, 1, bytes_of(100, 2)));
  CHECK(test::is(first, 0, bytes_of(100, 1)));
  CHECK(p.right.front().data == first.data);
}

TEST_CASE("slot fifo: a length that the peer can't have sent is not believed") {
  RingPair p({2, 4096});
  REQUIRE(test::send(p.left, 7, bytes_of(100, 1)));
  p.there.line(0).bytes = 4097;
  CHECK(p.right.front().data != nullptr);
  CHECK(p.right.front().bytes == 0);
}

TEST_CASE("slot fifo: random traffic of two threads arrives as it was sent") {
  const uint32_t credits = GENERATE(1U, 2U, 5U);
  RingPair p({credits, 4096});
  std::string right;
  std::thread thread([&] { right = test::exchange(p.right, 2, 1, 2000, 4096); });
  const std::string left = test::exchange(p.left, 1, 2, 2000, 4096);
  thread.join();
  CHECK(left.empty());
  CHECK(right.empty());
}

TEST_CASE("slot fifo: memory of the shared heap is read where it lies, and free when the peer has popped the message") {
  RingPair p({2, 4096});
  CHECK(p.left.lends());
  const HeapBytes memory = heap_bytes(8192);
  std::memset(memory.get() + 100, 7, 4096);
  REQUIRE(p.left.send_from(3, memory.get() + 100, 4096));
  const Arrival arrival = p.right.front();
  CHECK(test::is(arrival, 3, bytes_of(4096, 7)));
  memory.get()[100] = std::byte{8};
  CHECK(arrival.data[0] == std::byte{8});
  CHECK(p.left.completed() < p.left.sent());
  p.right.pop();
  CHECK(p.left.completed() == p.left.sent());
  REQUIRE(p.left.send_from(4, memory.get(), 64));
  REQUIRE(test::send(p.left, 5, bytes_of(300, 9)));
  CHECK_FALSE(p.left.send_from(6, memory.get(), 64));  // no credit
  CHECK(test::is(p.right.front(), 4, bytes_of(64, 0)));
  p.right.pop();
  CHECK(test::is(p.right.front(), 5, bytes_of(300, 9)));
}

TEST_CASE("slot fifo: memory that is not of the shared heap is copied, and so is all where nothing is lent") {
  RingPair p({2, 4096});
  std::vector<std::byte> memory = bytes_of(4096, 5);
  REQUIRE(p.left.send_from(1, memory.data(), memory.size()));
  memory.assign(memory.size(), std::byte{6});
  CHECK(test::is(p.right.front(), 1, bytes_of(4096, 5)));
  SlotFifo other(p.there, p.back);
  CHECK_FALSE(other.lends());
}

TEST_CASE("slot fifo: what was lent and is released is let go of with the next loans") {
  RingPair p({2, 4096});
  std::vector<HeapBytes> memory;
  for (int i = 0; i < 6; ++i) {
    memory.push_back(heap_bytes(12345 * 4096));  // of no other size in this process
    REQUIRE(p.left.send_from(1, memory.back().get(), 4096));
    REQUIRE(p.right.front().data != nullptr);
    p.right.pop();
  }
  const auto mapped = [] { return test::mappings_of(12346 * 4096); };
  CHECK(mapped() == 12);
  memory.erase(memory.begin(), memory.begin() + 5);
  CHECK(mapped() == 7);
  for (const size_t left : {4U, 2U}) {
    REQUIRE(p.left.send_from(1, memory.back().get(), 4096));
    REQUIRE(p.right.front().data != nullptr);
    p.right.pop();
    CHECK(mapped() == left);
  }
}

TEST_CASE("slot fifo: a loan that is not what it says is a failure, which is said once, and nothing is read") {
  RingPair p({4, 4096});
  const HeapBytes memory = heap_bytes(8192);
  const auto lend = [&](auto change) {
    p.failure.reset();
    REQUIRE(p.left.send_from(1, memory.get(), 4096));
    change(p.there.line(0));
    const bool nothing = p.right.front().data == nullptr;
    CHECK(p.right.front().data == nullptr);
    return nothing && p.failure ? p.failure->what : "nothing is wrong";
  };
  SECTION("beyond the end") {
    const std::string what = lend([](SlotLine& line) { line.inline_data[8] = std::byte{1}, line.inline_data[9] = std::byte{0x10}; });
    CHECK(what == "shm: the peer lends 4096 bytes from 4097 on of a memory of 8192");
  }
  SECTION("of a segment that nobody has told of") {
    const std::string what = lend([&](SlotLine& line) {
      line.inline_data[0] ^= std::byte{0xff};
      *p.there.room(0) = std::byte{0};
    });
    CHECK(what.starts_with("shm: memory that the peer lends: "));
  }
}

TEST_CASE("slot fifo: an end that goes takes back what it has lent, and nothing else") {
  constexpr Slots slots{4, 4096};
  const size_t bytes = SlotRing::footprint(slots);
  const std::unique_ptr<std::byte, PageDelete> ring(static_cast<std::byte*>(::operator new (2 * bytes, std::align_val_t{SlotRing::page})));
  std::memset(ring.get(), 0, 2 * bytes);
  std::optional<Error> failure;
  const SlotRing there(ring.get(), slots);
  const SlotRing back(ring.get() + bytes, slots);
  auto left = std::make_unique<SlotFifo>(there, back, &failure);
  SlotFifo right(back, there, &failure);
  const HeapBytes memory = heap_bytes(4096);
  REQUIRE(test::send(*left, 1, bytes_of(100, 1)));
  REQUIRE(left->send_from(2, memory.get(), 4096));
  left.reset();
  CHECK(test::is(right.front(), 1, bytes_of(100, 1)));
  right.pop();
  CHECK(right.front().data == nullptr);
  CHECK_FALSE(failure);
}
