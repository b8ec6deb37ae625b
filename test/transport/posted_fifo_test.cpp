// PostedFifo over posted endpoints within the process: no hardware, and every step of both sides is in the test's hand.
#include "transport/posted_fifo.h"

#include <array>
#include <cstring>
#include <random>
#include <thread>

#include "test/catch.h"
#include "transport/loopback_posted.h"

using namespace gyre;
using namespace gyre::transport;

namespace {

struct PostedPair {
  explicit PostedPair(Slots slots, uint32_t seed = 0)
      : left_worker(*open_posted_loopback_worker(slots, seed)),
        right_worker(*open_posted_loopback_worker(slots, seed == 0 ? 0 : seed + 1)) {
    auto listener = *right_worker->listen();
    left = *left_worker->connect(listener->address(), "hello");
    right = *listener->accept();
  }
  // More than the longest delay of a completion.
  void settle() {
    for (int i = 0; i < 10; ++i) {
      left_worker->progress();
      right_worker->progress();
    }
  }
  std::unique_ptr<Worker> left_worker, right_worker;
  std::unique_ptr<Endpoint> left, right;
};

bool send_text(Fifo& fifo, uint64_t plan, std::string_view text) {
  std::byte* slot = fifo.reserve(text.size());
  if (!slot) return false;
  std::memcpy(slot, text.data(), text.size());
  fifo.commit(plan, text.size());
  return true;
}

std::string text_of(const Arrival& a) { return a.data ? std::string(reinterpret_cast<const char*>(a.data), a.bytes) : "(none)"; }

}  // namespace

TEST_CASE("posted loopback: a connection is ready once accepted, with the hello on both sides") {
  auto left_worker = *open_posted_loopback_worker({});
  auto right_worker = *open_posted_loopback_worker({});
  auto listener = *right_worker->listen();
  CHECK(!left_worker->connect("posted-loopback:0", ""));
  auto left = *left_worker->connect(listener->address(), "from left");
  CHECK_FALSE(*left->ready());
  auto right = *listener->accept();
  CHECK(*left->ready());
  CHECK(*right->ready());
  CHECK(left->hello() == "from left");
  CHECK(right->hello() == "from left");
  CHECK(*listener->accept() == nullptr);
}

TEST_CASE("posted loopback: equal tags match in order, a longer message fails its receive, a closed peer fails both") {
  PostedPair p({});
  std::array<std::byte, 4> out{std::byte{1}, std::byte{2}, std::byte{3}, std::byte{4}}, in{};
  auto* receive = p.right->receive(7, std::span(in).first(2), nullptr);
  auto* send = p.left->send(7, out, nullptr);
  p.settle();
  REQUIRE(send->done);
  REQUIRE(receive->done);
  CHECK(send->failure == nullptr);
  CHECK(receive->failure != nullptr);
  auto* stays = p.right->receive(8, in, nullptr);
  p.left.reset();
  p.settle();
  CHECK(stays->done);
  CHECK(stays->failure != nullptr);
}

TEST_CASE("posted fifo: messages arrive in order with plan and bytes, with and without late completions") {
  const uint32_t seed = GENERATE(0u, 1u, 2u, 3u);
  INFO("seed " << seed);
  PostedPair p({4, 64}, seed);
  auto& out = p.left->fifo();
  auto& in = p.right->fifo();
  int shown = 0;
  for (int sent = 0, announced = 0; shown < 100; p.settle()) {
    while (sent < 100 && send_text(out, static_cast<uint64_t>(sent), "message " + std::to_string(sent))) ++sent;
    while (announced < 100 && in.expect(static_cast<uint64_t>(announced), nullptr, 8 + std::to_string(announced).size())) ++announced;
    for (Arrival a = in.front(); a.data; a = in.front(), ++shown) {
      REQUIRE(text_of(a) == "message " + std::to_string(shown));
      REQUIRE(a.plan == static_cast<uint64_t>(shown));
      in.pop();
    }
  }
  CHECK(out.sent() == 100);
  p.settle();
  CHECK(out.completed() == 100);
}

TEST_CASE("posted fifo: where only registered memory can be moved, messages go from and to what was admitted") {
  const auto from_worker = *open_posted_loopback_worker({4, 64}, 0, false), to_worker = *open_posted_loopback_worker({4, 64}, 0, false);
  const auto listener = *to_worker->listen();
  const auto from = *from_worker->connect(listener->address(), ""), to = *listener->accept();
  std::array<std::byte, 32> sent{}, received{};
  sent.fill(std::byte{7});
  const auto sent_memory = *from_worker->register_memory(sent), received_memory = *to_worker->register_memory(received);
  from->fifo().admit(sent, *sent_memory);
  to->fifo().admit(received, *received_memory);
  for (const size_t at : {size_t{0}, sent.size() - 8}) {
    REQUIRE(to->fifo().expect(1, received.data() + at, 8));
    REQUIRE(from->fifo().send_from(1, sent.data() + at, 8));
    from_worker->progress(), to_worker->progress();
    CHECK(to->fifo().front().data == received.data() + at);
    CHECK(received[at] == std::byte{7});
    to->fifo().pop();
  }
  CHECK(received[8] == std::byte{0});
  CHECK(from_worker->failure() == nullptr);
  CHECK(to_worker->failure() == nullptr);
}

TEST_CASE("posted fifo: never more than its credits are under way, for any number of credits") {
  const uint32_t credits = GENERATE(1u, 2u, 3u, 4u, 5u, 7u, 8u, 64u);
  INFO("credits " << credits);
  PostedPair p({credits, 8});
  auto& out = p.left->fifo();
  auto& in = p.right->fifo();
  uint64_t sent = 0, announced = 0, popped = 0;
  std::mt19937 random(credits);
  while (popped < 500) {
    if (random() % 2 == 0 && send_text(out, sent, "x")) ++sent;
    if (random() % 2 == 0 && in.expect(announced, nullptr, 1)) ++announced;
    if (random() % 3 == 0 && in.front().data) {
      in.pop();
      ++popped;
    }
    REQUIRE(sent - popped <= credits);
    REQUIRE(announced - popped <= credits);
    if (random() % 4 == 0) p.settle();
  }
  SECTION("and all come back") {
    while (popped < sent) {
      while (announced < sent && in.expect(announced, nullptr, 1)) ++announced;
      p.settle();
      if (in.front().data) in.pop(), ++popped;
    }
    p.settle();
    uint32_t free = 0;
    while (send_text(out, sent + free, "x")) ++free;
    // Up to half a batch of credits is with the receiver still.
    CHECK(free > credits - std::max(credits / 2, 1u));
    CHECK(out.sent() == sent + free);
  }
}

TEST_CASE("posted fifo: a destination receives without a slot, and user memory is sent without one") {
  PostedPair p({2, 8});
  std::string source(1000, 'a'), destination(1000, ' ');
  auto& out = p.left->fifo();
  auto& in = p.right->fifo();
  REQUIRE(out.send_from(5, reinterpret_cast<const std::byte*>(source.data()), source.size()));
  p.settle();
  CHECK(out.sent() == 1);
  CHECK(out.completed() == 0);  // not before it was matched
  auto* place = reinterpret_cast<std::byte*>(destination.data());
  REQUIRE(in.expect(5, place, destination.size()));
  CHECK(in.front().data == nullptr);  // the receive is not seen as done yet
  p.settle();
  CHECK(in.front().data == place);
  CHECK(destination == source);
  CHECK(out.completed() == 1);
}

TEST_CASE("posted fifo: messages without bytes count") {
  PostedPair p({2, 8});
  auto& out = p.left->fifo();
  auto& in = p.right->fifo();
  REQUIRE(send_text(out, 1, ""));
  REQUIRE(out.send_from(2, nullptr, 0));
  CHECK_FALSE(out.send_from(3, nullptr, 0));
  REQUIRE(in.expect(1, nullptr, 0));
  REQUIRE(in.expect(2, nullptr, 0));
  CHECK_FALSE(in.expect(3, nullptr, 0));
  p.settle();
  for (const uint64_t plan : {1u, 2u}) {
    CHECK(in.front().data != nullptr);
    CHECK(in.front().plan == plan);
    in.pop();
  }
  p.settle();
  CHECK(out.completed() == 2);
  CHECK(out.send_from(3, nullptr, 0));
}

TEST_CASE("posted fifo: a message of another plan is placed nowhere") {
  PostedPair p({4, 8});
  auto& out = p.left->fifo();
  auto& in = p.right->fifo();
  std::array<std::byte, 4> untouched{};
  REQUIRE(send_text(out, 1, "abcd"));
  REQUIRE(in.expect(2, untouched.data(), 4));
  p.settle();
  CHECK(in.front().data == nullptr);
  CHECK(untouched == std::array<std::byte, 4>{});
  // Bit 39 belongs to credits: a plan with it set is data like any other.
  REQUIRE(send_text(out, 2 | uint64_t{1} << 39 | uint64_t{1} << 63, "efgh"));
  p.settle();
  CHECK(in.front().data == untouched.data());
}

TEST_CASE("posted fifo: a message of another length than announced is a failure of the worker") {
  PostedPair p({4, 8});
  auto& in = p.right->fifo();
  const size_t announced = GENERATE(3u, 5u);
  REQUIRE(send_text(p.left->fifo(), 1, "abcd"));
  REQUIRE(in.expect(1, nullptr, announced));
  p.settle();
  CHECK(in.front().data == nullptr);
  REQUIRE(p.right_worker->failure() != nullptr);
  CHECK(static_cast<PostedFifo&>(in).failure() != nullptr);
  CHECK_FALSE(in.expect(2, nullptr, 1));
  CHECK(in.reserve(1) == nullptr);
  CHECK(p.left_worker->failure() == nullptr);
}

TEST_CASE("posted fifo: what does not fit a slot is refused aloud") {
  PostedPair p({4, 8});
  CHECK(p.left->fifo().reserve(9) == nullptr);
  CHECK(p.left_worker->failure() != nullptr);
  CHECK_FALSE(p.right->fifo().expect(0, nullptr, 9));
  CHECK(p.right_worker->failure() != nullptr);
}

TEST_CASE("posted fifo: a peer that closes is a failure only for who still needs it") {
  PostedPair p({2, 8});
  auto& out = p.left->fifo();
  auto& in = p.right->fifo();
  REQUIRE(send_text(out, 1, "a"));
  REQUIRE(in.expect(1, nullptr, 1));
  p.settle();
  REQUIRE(in.front().data != nullptr);
  CHECK(out.completed() == 1);
  SECTION("the receiver returns a credit to nobody") {
    p.left.reset();
    in.pop();
    p.settle();
    CHECK(in.front().data == nullptr);
    CHECK(p.right_worker->failure() == nullptr);
  }
  SECTION("the receiver waits for more") {
    REQUIRE(in.expect(2, nullptr, 1));
    in.pop();
    p.left.reset();
    p.settle();
    CHECK(in.front().data == nullptr);
    CHECK(p.right_worker->failure() != nullptr);
  }
  SECTION("the sender waits for credit") {
    REQUIRE(send_text(out, 2, "b"));
    REQUIRE(in.expect(2, nullptr, 1));
    p.settle();
    p.right.reset();
    p.settle();
    CHECK(out.completed() == 2);
    CHECK(p.left_worker->failure() == nullptr);
    CHECK(out.reserve(1) == nullptr);
    CHECK(p.left_worker->failure() != nullptr);
  }
}

namespace {

// Byte j of message i; both sides know it.
std::byte pattern(uint64_t i, size_t j) { return static_cast<std::byte>(i * 31 + j * 7); }
size_t length(uint64_t i, uint32_t seed) { return (i * 2654435761u + seed) % 200; }

std::string traffic(Worker& worker, Fifo& fifo, uint32_t seed, uint64_t messages) {
  std::mt19937 random(seed);
  std::vector<std::vector<std::byte>> sources(messages), destinations(messages);
  uint64_t announced = 0, popped = 0;
  const auto fill = [&](std::byte* data, size_t bytes) {
    for (size_t j = 0; j < bytes; ++j) data[j] = pattern(fifo.sent(), j);
  };
  while (popped < messages || fifo.completed() < messages) {
    worker.progress();
    if (const auto* failure = worker.failure()) return failure->what;
    if (const auto i = fifo.sent(); i < messages && random() % 2 == 0) {
      const size_t bytes = length(i, 0);
      if (random() % 2 == 0) {
        if (auto* slot = fifo.reserve(bytes)) fill(slot, bytes), fifo.commit(i, bytes);
      } else {
        sources[i].resize(bytes);
        fill(sources[i].data(), bytes);
        fifo.send_from(i, sources[i].data(), bytes);
      }
    }
    if (announced < messages && random() % 2 == 0) {
      destinations[announced].resize(length(announced, 0));
      auto* destination = random() % 2 == 0 && !destinations[announced].empty() ? destinations[announced].data() : nullptr;
      if (fifo.expect(announced, destination, destinations[announced].size())) ++announced;
    }
    if (const auto a = fifo.front(); a.data) {
      if (a.plan != popped || a.bytes != length(popped, 0)) return "message out of order";
      for (size_t j = 0; j < a.bytes; ++j)
        if (a.data[j] != pattern(popped, j)) return "wrong bytes";
      fifo.pop();
      ++popped;
    }
  }
  return "";
}

}  // namespace

TEST_CASE("posted fifo: random traffic of two threads arrives whole and in order") {
  const uint32_t credits = GENERATE(1u, 2u, 3u, 8u);
  const uint32_t seed = GENERATE(0u, 11u, 12u);
  INFO("credits " << credits << ", seed " << seed);
  PostedPair p({credits, 256}, seed);
  std::string left, right;
  std::thread other([&] { right = traffic(*p.right_worker, p.right->fifo(), seed + 100, 300); });
  left = traffic(*p.left_worker, p.left->fifo(), seed + 200, 300);
  // The peer may need our credits still.
  other.join();
  CHECK(left == "");
  CHECK(right == "");
}
