#include "transport/loopback.h"

#include <thread>

#include "test/catch.h"
#include "test/transport/fifo_traffic.h"

using namespace gyre;
using namespace gyre::transport;

namespace {

struct LoopbackPair {
  explicit LoopbackPair(Slots slots) : left_worker(*open_loopback_worker(slots)), right_worker(*open_loopback_worker(slots)) {
    const auto listener = *right_worker->listen();
    left = *left_worker->connect(listener->address(), "hello");
    right = *listener->accept();
  }
  std::unique_ptr<Worker> left_worker, right_worker;
  std::unique_ptr<Endpoint> left, right;
};

}  // namespace

TEST_CASE("loopback: an accepted connection is ready, with the hello on both sides") {
  LoopbackPair p({2, 4096});
  CHECK(*p.left->ready());
  CHECK(*p.right->ready());
  CHECK(p.left->hello() == "hello");
  CHECK(p.right->hello() == "hello");
  CHECK(&p.left->fifo() == &p.left->fifo());
}

TEST_CASE("loopback: peers are accepted in the order they connected, then nobody") {
  const auto worker = *open_loopback_worker({});
  const auto listener = *worker->listen();
  CHECK(*listener->accept() == nullptr);
  const auto first = *worker->connect(listener->address(), "first");
  const auto second = *worker->connect(listener->address(), "second");
  CHECK((*listener->accept())->hello() == "first");
  CHECK((*listener->accept())->hello() == "second");
  CHECK(*listener->accept() == nullptr);
}

TEST_CASE("loopback: two listeners have two addresses") {
  const auto worker = *open_loopback_worker({});
  const auto one = *worker->listen();
  const auto other = *worker->listen();
  CHECK(one->address() != other->address());
  const auto endpoint = *worker->connect(other->address(), "");
  CHECK(*one->accept() == nullptr);
  CHECK(*other->accept() != nullptr);
}

TEST_CASE("loopback: an address where nobody listens is an error that says what else there is") {
  const auto worker = *open_loopback_worker({});
  std::string gone;
  {
    const auto listener = *worker->listen();
    gone = listener->address();
  }
  for (const std::string& address : {std::string(), std::string("nonsense"), std::string("0"), std::string("99999999999999999999"), gone}) {
    const auto none = worker->connect(address, "");
    INFO(address);
    REQUIRE_FALSE(none);
    CHECK(none.error().code == Code::remote);
    CHECK(none.error().what == "loopback: nobody listens at '" + address + "' in this process; ranks of other processes need shm or ucx");
  }
}

TEST_CASE("loopback: credits are those that were asked for") {
  LoopbackPair p({3, 4096});
  for (int i = 0; i < 3; ++i) CHECK(test::send(p.left->fifo(), 0, {}));
  CHECK_FALSE(test::send(p.left->fifo(), 0, {}));
  CHECK(test::send(p.right->fifo(), 0, {}));  // each direction has its own
}

TEST_CASE("loopback: what was sent can be received after the sender has gone") {
  LoopbackPair p({2, 4096});
  const auto bytes = test::message(1, 5, 4096);
  REQUIRE(test::send(p.left->fifo(), 9, bytes));
  p.left.reset();
  p.left_worker.reset();
  CHECK(test::is(p.right->fifo().front(), 9, bytes));
}

TEST_CASE("loopback: random traffic of two threads arrives as it was sent") {
  LoopbackPair p({4, 8192});
  std::string right;
  std::thread thread([&] { right = test::exchange(p.right->fifo(), 2, 1, 2000, 8192); });
  const std::string left = test::exchange(p.left->fifo(), 1, 2, 2000, 8192);
  thread.join();
  CHECK(left.empty());
  CHECK(right.empty());
}

TEST_CASE("loopback: any memory can be registered, and there is nothing to progress") {
  const auto worker = *open_loopback_worker({});
  std::vector<std::byte> memory(100);
  CHECK(worker->register_memory(memory));
  CHECK(worker->progress() == 0);
  CHECK(worker->failure() == nullptr);
}
