// The verbs backend's endpoints, over devices inside the program and TCP of this host.
#include <atomic>
#include <future>
#include <thread>
#include <utility>

#include "test/becomes.h"
#include "test/catch.h"
#include "test/transport/fake_verbs.h"
#include "test/transport/fifo_traffic.h"
#include "test/transport/loopback_address.h"
#include "transport/control.h"
#include "transport/verbs.h"

namespace gyre::test {
namespace {

using namespace transport;

VerbsWay way(const FakeVerbs& fake, const std::string& prefix, int rails) {
  VerbsWay way;
  way.sysfs = fake.sysfs();
  for (int i = 0; i < rails; ++i) way.ports.push_back({prefix + std::to_string(i), 1});
  way.address = loopback_address(1);
  return way;
}

struct Joined {
  explicit Joined(int rails = 1, Slots slots = {}) {
    for (const char* prefix : {"a", "b"})
      for (int i = 0; i < rails; ++i) fake.add_device(prefix + std::to_string(i));
    a_worker = *open_verbs_worker(slots, way(fake, "a", rails));
    b_worker = *open_verbs_worker(slots, way(fake, "b", rails));
  }
  void join() {
    auto listener = *a_worker->listen();
    b = *b_worker->connect(listener->address(), "who I am");
    REQUIRE(becomes([&] {
      progress();
      if (!a) a = *listener->accept();
      return a && *a->ready() && *b->ready();
    }));
  }
  void progress() {
    (void)a_worker->progress();
    (void)b_worker->progress();
  }
  FakeVerbs fake;
  std::unique_ptr<Worker> a_worker, b_worker;
  std::unique_ptr<Endpoint> a, b;
};

}  // namespace

TEST_CASE("two workers join, and the accepting one has heard the hello") {
  Joined joined(2);
  joined.join();
  CHECK(joined.a->hello() == "who I am");
  CHECK(joined.b->hello() == "who I am");
}

TEST_CASE("a fifo over verbs carries random traffic both ways, each end in a thread of its own") {
  for (const int rails : {1, 2}) {
    Joined joined(rails, {8, 70000});
    joined.join();
    std::atomic<int> finished = 0;
    const auto run = [&](Worker& worker, Endpoint& endpoint, uint64_t out, uint64_t in) -> std::string {
      constexpr uint64_t messages = 300;
      uint64_t sent = 0, announced = 0, received = 0;
      Fifo& fifo = endpoint.fifo();
      bool told = false;
      while (finished < 2) {
        if (worker.progress() == 0) std::this_thread::yield();
        if (worker.failure()) return finished = 2, worker.failure()->what;
        if (sent < messages && send(fifo, 5, message(out, sent, 70000))) ++sent;
        // Announced before it can be shown; its length is known to both ends.
        while (announced < messages && fifo.expect(5, nullptr, message(in, announced, 70000).size())) ++announced;
        if (const Arrival arrival = fifo.front(); arrival.data != nullptr) {
          if (!is(arrival, 5, message(in, received, 70000))) return finished = 2, "message " + std::to_string(received) + " is wrong";
          fifo.pop();
          ++received;
        }
        if (sent == messages && received == messages && !std::exchange(told, true)) ++finished;
      }
      return {};
    };
    auto other = std::async(std::launch::async, [&] { return run(*joined.b_worker, *joined.b, 2, 1); });
    const std::string own = run(*joined.a_worker, *joined.a, 1, 2);
    CHECK(own.empty());
    CHECK(other.get().empty());
  }
}

TEST_CASE("who closes is told from who is lost") {
  Joined joined;
  joined.join();
  std::byte data[8]{};
  auto memory = *joined.a_worker->register_memory(data);
  Request* receive = joined.a->receive(1, data, memory.get());
  REQUIRE(receive != nullptr);
  joined.b->start_close();
  REQUIRE(becomes([&] { return joined.progress(), joined.b->closed(); }));
  joined.b.reset();
  REQUIRE(becomes([&] { return joined.progress(), receive->done; }));
  CHECK(receive->failure == std::string("the peer closed the connection"));
  CHECK(joined.a_worker->failure() == nullptr);
}

TEST_CASE("a lost peer is a failure of the worker that names its address") {
  Joined joined;
  joined.join();
  joined.fake.cut_path("a0");
  std::byte data[8]{};
  auto memory = *joined.a_worker->register_memory(data);
  Request* receive = joined.a->receive(1, data, memory.get());
  REQUIRE(becomes([&] { return joined.progress(), receive->done; }));
  REQUIRE(joined.a_worker->failure() != nullptr);
  CHECK(joined.a_worker->failure()->what.find("127.0.0.1:") != std::string::npos);
}

TEST_CASE("workers of different geometry refuse each other, and both say why") {
  FakeVerbs fake;
  fake.add_device("a0");
  fake.add_device("b0");
  auto a_worker = *open_verbs_worker({8, 4096}, way(fake, "a", 1));
  auto b_worker = *open_verbs_worker({4, 4096}, way(fake, "b", 1));
  auto listener = *a_worker->listen();
  auto b = *b_worker->connect(listener->address(), "");
  std::unique_ptr<Endpoint> a;
  REQUIRE(becomes([&] {
    (void)a_worker->progress();
    (void)b_worker->progress();
    if (!a) a = *listener->accept();
    return a && !a->ready() && !b->ready();
  }));
  CHECK(a->ready().error().what.find("8 credits of 4096 bytes here, but 4 of 4096 at 127.0.0.1") == 0);
  CHECK(b->ready().error().what.find("refused: 8 credits of 4096 bytes here, but 4") != std::string::npos);
}

TEST_CASE("strangers at a listener are dropped, and keep nobody from joining") {
  Joined joined;
  auto listener = *joined.a_worker->listen();
  SocketAddress address;
  std::memcpy(&address.bytes, listener->address().data() + 32, sizeof address.bytes);
  address.length = sizeof(sockaddr_in);
  std::vector<Control> strangers;
  for (int i = 0; i < 100; ++i) {
    strangers.push_back(Control::to(address, std::chrono::seconds(5)));
    if (i % 2 == 0) strangers.back().send(1, std::string(100, 'x'));
  }
  joined.b = *joined.b_worker->connect(listener->address(), "");
  CHECK(becomes([&] {
    joined.progress();
    if (!joined.a) joined.a = *listener->accept();
    return joined.a && *joined.a->ready() && *joined.b->ready();
  }));
}

TEST_CASE("an address that is none, and ports that are none, are errors") {
  FakeVerbs fake;
  fake.add_device("a0");
  auto worker = *open_verbs_worker({}, way(fake, "a", 1));
  CHECK(worker->connect("junk", "").error().code == Code::invalid_argument);
  CHECK(open_verbs_worker({}, way(fake, "c", 1)).error().what == "there is no RDMA device c0; there are a0");
  CHECK(open_verbs_worker({}, way(fake, "a", 0)).error().what == "a connection has 1 to 8 ports, not 0");
}

}  // namespace gyre::test
