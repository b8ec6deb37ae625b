// The verbs backend's endpoints, over devices inside the program and TCP of this host.
#include <array>
#include <atomic>
#include <functional>
#include <future>
#include <thread>
#include <utility>

#include "test/transport/fifo_traffic.h"
#include "test/transport/verbs_joined.h"
#include "transport/control.h"

namespace gyre::test {

using namespace transport;

TEST_CASE("two workers join, and the accepting one has heard the hello") {
  Joined joined(2);
  joined.join();
  CHECK(joined.a->hello() == "who I am");
  CHECK(joined.b->hello() == "who I am");
}

namespace {

/// Each end in a thread of its own; `meanwhile` is called with the number of messages that have come to the first.
void traffic_both_ways(
    Joined& joined, const std::function<void(uint64_t)>& meanwhile = [](uint64_t) {}) {
  std::atomic<int> finished = 0;
  const auto run = [&](Worker& worker, Endpoint& endpoint, uint64_t out, uint64_t in) -> std::string {
    constexpr uint64_t messages = 200;
    uint64_t sent = 0, announced = 0, received = 0;
    std::array<std::vector<std::vector<std::byte>>, 3> all;
    for (const uint64_t seed : {out, in})
      for (uint64_t i = 0; i < messages; ++i) all[seed].push_back(message(seed, i, 70000));
    Fifo& fifo = endpoint.fifo();
    bool told = false;
    while (finished < 2) {
      if (worker.progress() == 0) std::this_thread::yield();
      if (worker.failure()) return finished = 2, worker.failure()->what;
      if (sent < messages && send(fifo, 5, all[out][sent])) ++sent;
      // Announced before it can be shown; its length is known to both ends.
      while (announced < messages && fifo.expect(5, nullptr, all[in][announced].size())) ++announced;
      if (out == 1) meanwhile(received);
      if (const Arrival arrival = fifo.front(); arrival.data != nullptr) {
        if (!is(arrival, 5, all[in][received])) return finished = 2, "message " + std::to_string(received) + " is wrong";
        fifo.pop();
        ++received;
      }
      if (sent == messages && received == messages && !std::exchange(told, true)) ++finished;
    }
    return {};
  };
  auto other = std::async(std::launch::async, [&] { return run(*joined.b_worker, *joined.b, 2, 1); });
  const std::string own = run(*joined.a_worker, *joined.a, 1, 2);
  CHECK(own == "");
  CHECK(other.get() == "");
}

}  // namespace

TEST_CASE("a fifo over verbs carries random traffic both ways") {
  for (const int rails : {1, 2}) {
    Joined joined(rails, {8, 70000});
    joined.join();
    traffic_both_ways(joined);
  }
}

TEST_CASE("when its last path has failed, a connection goes on over TCP, and over the path again when that is back") {
  for (const int rails : {1, 2}) {
    Joined joined(rails, {8, 70000}, true);
    joined.join();
    bool cut = false;
    traffic_both_ways(joined, [&](uint64_t received) {
      if (received < 100 || std::exchange(cut, true)) return;
      for (int rail = 0; rail < rails; ++rail) joined.fake.cut("a" + std::to_string(rail));
    });
    CHECK(cut);
    const auto before = joined.fake.counts();
    traffic_both_ways(joined);
    CHECK(joined.fake.counts().immediates == before.immediates);
    for (int rail = 0; rail < rails; ++rail) joined.fake.restore("a" + std::to_string(rail));
    REQUIRE(becomes([&] { return traffic_both_ways(joined), joined.fake.counts().immediates > before.immediates + 100; }));
    CHECK(joined.a_worker->failure() == nullptr);
    CHECK(joined.b_worker->failure() == nullptr);
  }
}

// One end gives TCP up while a rail is cut; when that is back, its host answers the other's with a reset.
TEST_CASE("a path that does not carry is found before a connection is ready") {
  Joined joined(2);
  joined.fake.cut_path("a0");
  joined.join();
  std::vector<std::byte> data(100000);
  auto memory = *joined.a_worker->register_memory(data), sent = *joined.b_worker->register_memory(data);
  Request* receive = joined.a->receive(1, data, memory.get());
  Request* send = nullptr;
  REQUIRE(becomes([&] { return joined.progress(), (send = joined.b->send(1, data, sent.get())) != nullptr; }));
  CHECK(becomes([&] { return joined.progress(), send->done && receive->done; }));
  CHECK(receive->failure == nullptr);
}

TEST_CASE("a connection of which no path carries is never ready, and says why") {
  Joined alone;
  alone.fake.cut_path("a0");
  auto listener = *alone.a_worker->listen();
  alone.b = *alone.b_worker->connect(listener->address(), "");
  REQUIRE(becomes([&] {
    alone.progress();
    if (!alone.a) alone.a = *listener->accept();
    return alone.a && !alone.a->ready() && !alone.b->ready();
  }));
  CHECK(alone.b->ready().error().what.find("b0:1 to 127.0.0.1") == 0);
  CHECK(alone.b_worker->failure() == nullptr);
}

TEST_CASE("an end that has nothing under way hears that the other has no path left") {
  Joined joined(2);
  joined.join();
  std::byte data[8]{}, sent[8]{};
  auto memory = *joined.b_worker->register_memory(data, MemoryKind::host),
       sent_memory = *joined.a_worker->register_memory(sent, MemoryKind::host);
  Request* receive = joined.b->receive(1, data, memory.get());
  for (int i = 0; i < 1000; ++i) joined.progress();  // the other knows of it
  for (const char* rail : {"a0", "a1"}) joined.fake.cut_path(rail);
  Request* send = joined.a->send(1, sent, sent_memory.get());
  REQUIRE(send != nullptr);
  REQUIRE(becomes([&] { return joined.progress(), send->done && receive->done; }));
  CHECK(std::string(send->failure).find("no acknowledgement") != std::string::npos);
  CHECK(std::string(receive->failure).find("the connection has failed at 127.0.0.1:") != std::string::npos);
  REQUIRE(joined.b_worker->failure() != nullptr);
  CHECK(joined.b_worker->failure()->what.find("no acknowledgement") != std::string::npos);
}

TEST_CASE("a path that can't be joined leaves the connection to the others") {
  Joined joined(2);
  joined.fake.fail("modify_qp", ETIMEDOUT, 5);  // the first after those that make four queue pairs
  joined.join();
  std::byte data[8]{}, sent[8]{};
  auto memory = *joined.b_worker->register_memory(data, MemoryKind::host),
       sent_memory = *joined.a_worker->register_memory(sent, MemoryKind::host);
  Request* receive = joined.b->receive(1, data, memory.get());
  Request* send = nullptr;
  REQUIRE(becomes([&] { return joined.progress(), (send = joined.a->send(1, sent, sent_memory.get())) != nullptr; }));
  CHECK(becomes([&] { return joined.progress(), send->done && receive->done; }));
  CHECK(send->failure == nullptr);
}

TEST_CASE("completions that outlive their connection reach nobody") {
  Joined joined;
  joined.fake.keep_completions();
  std::byte data[8]{};
  auto memory = *joined.a_worker->register_memory(data, MemoryKind::host);
  for (int i = 0; i < 3; ++i) {
    joined.join();
    REQUIRE(joined.a->receive(1, data, memory.get()) != nullptr);
    joined.a->break_off("the test is over");
    joined.b->break_off("the test is over");
    joined.a.reset();
    joined.b.reset();
  }
  joined.join();
  Request* receive = joined.a->receive(1, data, memory.get());
  auto sent = *joined.b_worker->register_memory(data, MemoryKind::host);
  Request* send = nullptr;
  REQUIRE(becomes([&] { return joined.progress(), (send = joined.b->send(1, data, sent.get())) != nullptr; }));
  CHECK(becomes([&] { return joined.progress(), send->done && receive->done; }));
  CHECK(receive->bytes == sizeof data);
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

TEST_CASE("a receive for which there was no room is told of as soon as there is") {
  FakeTraits traits;
  traits.max_qp_wr = 128;
  Joined joined(1, {}, false, false, traits);
  joined.join();
  std::byte data[8]{}, sent[8]{};
  auto memory = *joined.a_worker->register_memory(data, MemoryKind::host);
  auto sent_memory = *joined.b_worker->register_memory(sent, MemoryKind::host);
  joined.fake.hold(true);
  for (uint64_t i = 0; i < 200; ++i) REQUIRE(joined.a->receive(i, data, memory.get()) != nullptr);
  joined.fake.hold(false);
  int calls = 0;
  while (calls < 100000 && !joined.b->send(199, sent, sent_memory.get())) {
    joined.progress();
    ++calls;
  }
  CHECK(calls < 300);
}

TEST_CASE("pieces for which there was no room are sent as soon as there is") {
  FakeTraits traits;
  traits.max_qp_wr = 128;
  traits.max_message = 4096;
  Joined joined(1, {}, false, false, traits);
  joined.join();
  std::vector<std::byte> data(16UL * 4096), sent(16UL * 4096);
  auto memory = *joined.a_worker->register_memory(data, MemoryKind::host);
  auto sent_memory = *joined.b_worker->register_memory(sent, MemoryKind::host);
  std::vector<Request*> receives, sends;
  for (uint64_t i = 0; i < 10; ++i) receives.push_back(joined.a->receive(i, data, memory.get()));
  for (int i = 0; i < 100; ++i) joined.progress();
  joined.fake.hold(true);
  while (Request* send = joined.b->send(sends.size(), sent, sent_memory.get())) sends.push_back(send);
  CHECK(sends.size() == 8);
  joined.fake.hold(false);
  int calls = 0;
  while (calls < 100000 && !(sends.back()->done && receives[sends.size() - 1]->done)) {
    joined.progress();
    ++calls;
  }
  CHECK(calls < 300);
}

TEST_CASE("a device's death is heard of before the peer is told what has arrived") {
  Joined joined(2);
  joined.join();
  std::byte data[8]{}, sent[8]{};
  auto memory = *joined.a_worker->register_memory(data, MemoryKind::host);
  auto sent_memory = *joined.b_worker->register_memory(sent, MemoryKind::host);
  std::array<Request*, 2> receives{};
  for (uint8_t i = 0; i < 2; ++i) receives[i] = joined.a->receive(i, data, memory.get(), {2, i});
  Request* send = nullptr;
  REQUIRE(becomes([&] { return joined.progress(), (send = joined.b->send(0, sent, sent_memory.get())) != nullptr; }));
  REQUIRE(becomes([&] { return joined.progress(), send->done; }));
  joined.fake.kill(joined.fake.bytes_of("b0") > joined.fake.bytes_of("b1") ? "a0" : "a1");
  Request* other = nullptr;
  CHECK(becomes([&] {
    joined.progress();
    if (!other) other = joined.b->send(1, sent, sent_memory.get());
    return joined.b->failure() || receives[0]->done;
  }));
  REQUIRE(joined.b->failure() != nullptr);
  CHECK(std::string(joined.b->failure()).find("GYRE_IB_CONFIRM=1") != std::string::npos);
}

}  // namespace gyre::test
