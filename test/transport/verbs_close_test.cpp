// How verbs connections end: as they should, or with what is lost.
#include <sys/socket.h>

#include <array>

#include "test/transport/verbs_joined.h"

namespace gyre::test {
namespace {

using namespace transport;

// Every TCP connection of this process, as a host does that has forgotten them.
void reset_connections() {
  for (int fd = 0; fd < 1024; ++fd) {
    sockaddr_storage peer{};
    socklen_t length = sizeof peer;
    if (::getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &length) != 0 || peer.ss_family == AF_UNIX) continue;
    sockaddr nobody{};
    nobody.sa_family = AF_UNSPEC;
    REQUIRE(::connect(fd, &nobody, sizeof nobody) == 0);
  }
}

}  // namespace

TEST_CASE("who has no path left and closes is not taken for lost") {
  Joined joined(1, {}, true);
  joined.join();
  std::byte data[8]{};
  auto memory = *joined.a_worker->register_memory(data);
  joined.fake.cut_path("a0");
  Request* receive = joined.a->receive(1, data, memory.get());
  Request* other = joined.a->receive(2, data, memory.get());
  auto sender_memory = *joined.b_worker->register_memory(data);
  Request* send = nullptr;
  REQUIRE(becomes([&] { return joined.progress(), (send = joined.b->send(1, data, sender_memory.get())) != nullptr; }));
  joined.leave();
  REQUIRE(becomes([&] { return joined.progress(), other->done; }));
  CHECK(receive->done);
  CHECK(receive->failure == nullptr);
  CHECK(other->failure == std::string("the peer closed the connection"));
  CHECK(joined.a_worker->failure() == nullptr);
}

TEST_CASE("who closes is told from who is lost") {
  Joined joined;
  joined.join();
  std::byte data[8]{};
  auto memory = *joined.a_worker->register_memory(data);
  Request* receive = joined.a->receive(1, data, memory.get());
  REQUIRE(receive != nullptr);
  joined.leave();
  REQUIRE(becomes([&] { return joined.progress(), receive->done; }));
  CHECK(receive->failure == std::string("the peer closed the connection"));
  CHECK(joined.a_worker->failure() == nullptr);
}

TEST_CASE("a connection with several paths outlives a reset of its TCP connection, and one with a single path does not") {
  const int rails = GENERATE(1, 2);
  Joined joined(rails);
  joined.join();
  reset_connections();
  for (int i = 0; i < 10'000; ++i) joined.progress();
  if (rails == 1) {
    CHECK(joined.a->failure() != nullptr);
    return;
  }
  REQUIRE(joined.a->failure() == nullptr);
  std::byte from[8]{std::byte{7}}, to[8]{};
  auto memory = *joined.a_worker->register_memory(to), sent_memory = *joined.b_worker->register_memory(from);
  Request* receive = joined.a->receive(1, to, memory.get());
  Request* send = nullptr;
  REQUIRE(becomes([&] {
    joined.progress();
    if (!send) send = joined.b->send(1, from, sent_memory.get());
    return send && send->done && receive->done;
  }));
  CHECK(to[0] == from[0]);
}

TEST_CASE("who closes waits for its confirmations to be there") {
  Joined joined(1, {}, false, true);
  joined.join();
  std::byte data[8]{}, sent[8]{};
  auto memory = *joined.b_worker->register_memory(data, MemoryKind::host),
       sent_memory = *joined.a_worker->register_memory(sent, MemoryKind::host);
  Request* receive = joined.b->receive(1, data, memory.get());
  Request* send = nullptr;
  REQUIRE(becomes([&] { return joined.progress(), (send = joined.a->send(1, sent, sent_memory.get())) != nullptr; }));
  REQUIRE(becomes([&] { return (void)joined.a_worker->progress(), (void)joined.b_worker->progress(), receive->done; }));
  joined.fake.hold(true);
  joined.b->start_close();
  CHECK(!joined.b->closed());
  joined.fake.hold(false);
  REQUIRE(becomes([&] { return joined.progress(), joined.b->closed(); }));
  joined.b.reset();
  CHECK(becomes([&] { return joined.progress(), send->done; }));
  CHECK(send->failure == nullptr);
}

TEST_CASE("progress of its worker sees a farewell out") {
  Joined joined;
  joined.join();
  joined.b->start_close();
  REQUIRE(becomes([&] { return joined.progress(), joined.a->failure() != nullptr; }));
  CHECK(joined.a->failure() == std::string("the peer closed the connection"));
}

TEST_CASE("what a peer had received when it closed is sent, though its last acknowledgement was lost") {
  Joined joined;
  joined.join();
  std::byte data[8]{};
  auto memory = *joined.a_worker->register_memory(data), sent_memory = *joined.b_worker->register_memory(data);
  Request* receive = joined.a->receive(1, data, memory.get());
  Request* send = nullptr;
  joined.fake.lose_acknowledgements("b0");
  REQUIRE(becomes([&] {
    (void)joined.a_worker->progress();
    if (!send) send = joined.b->send(1, data, sent_memory.get());
    return receive->done;
  }));
  CHECK(receive->failure == nullptr);
  joined.a->start_close();
  REQUIRE(becomes([&] { return (void)joined.a_worker->progress(), joined.a->closed(); }));
  joined.a.reset();
  REQUIRE(becomes([&] { return (void)joined.b_worker->progress(), send->done; }));
  CHECK(send->failure == nullptr);
  CHECK(becomes([&] { return (void)joined.b_worker->progress(), joined.b->failure() != nullptr; }));
  CHECK(joined.b->failure() == std::string("the peer closed the connection"));
  CHECK(joined.b_worker->failure() == nullptr);
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

TEST_CASE("who closes when TCP was reset unseen is not taken for lost") {
  Joined joined(2);
  joined.join();
  for (int i = 0; i < 5000; ++i) joined.progress();
  std::byte data[8]{};
  auto memory = *joined.a_worker->register_memory(data);
  Request* receive = joined.a->receive(1, data, memory.get());
  REQUIRE(receive != nullptr);
  reset_connections();
  joined.leave();
  REQUIRE(becomes([&] { return joined.progress(), receive->done; }));
  CHECK(receive->failure == std::string("the peer closed the connection"));
  CHECK(joined.a_worker->failure() == nullptr);
}

TEST_CASE("a peer that is dead is noticed though its end looks like a reset") {
  Joined joined(2);
  joined.join();
  std::byte data[8]{};
  auto memory = *joined.a_worker->register_memory(data);
  Request* receive = joined.a->receive(1, data, memory.get());
  reset_connections();
  joined.fake.cut_path("b0");
  joined.fake.cut_path("b1");
  REQUIRE(becomes([&] { return (void)joined.a_worker->progress(), receive->done; }));
  CHECK(joined.a_worker->failure() != nullptr);
}

TEST_CASE("a goodbye that is lost with its path is said again") {
  Joined joined(2);
  joined.join();
  reset_connections();
  for (int i = 0; i < 10'000; ++i) joined.progress();
  REQUIRE(joined.a->failure() == nullptr);
  REQUIRE(joined.b->failure() == nullptr);
  std::byte data[8]{};
  auto memory = *joined.a_worker->register_memory(data);
  Request* receive = joined.a->receive(1, data, memory.get());
  for (int i = 0; i < 100; ++i) joined.progress();
  joined.fake.cut_path("b0");
  joined.leave();
  REQUIRE(becomes([&] { return joined.progress(), receive->done; }));
  CHECK(receive->failure == std::string("the peer closed the connection"));
  CHECK(joined.a_worker->failure() == nullptr);
}

TEST_CASE("who closes waits until what a failed path had quietly brought is told of") {
  Joined joined(2);
  joined.join();
  for (int i = 0; i < 5000; ++i) joined.progress();
  std::byte data[16]{}, from[16]{};
  auto memory = *joined.a_worker->register_memory(data);
  auto sender_memory = *joined.b_worker->register_memory(from);
  std::array<Request*, 2> receives{}, sends{};
  for (uint8_t i = 0; i < 2; ++i) receives[i] = joined.a->receive(i, std::span(data).subspan(i * 8U, 8), memory.get(), {2, i});
  const uint64_t before = joined.fake.bytes_of("b0");
  REQUIRE(
      becomes([&] { return joined.progress(), (sends[0] = joined.b->send(0, std::span(from).first(8), sender_memory.get())) != nullptr; }));
  REQUIRE(becomes([&] { return joined.progress(), sends[0]->done; }));
  joined.fake.cut(joined.fake.bytes_of("b0") > before ? "b0" : "b1");
  for (int i = 0; i < 5000; ++i) (void)joined.b_worker->progress();  // which hears of that
  REQUIRE((sends[1] = joined.b->send(1, std::span(from).subspan(8), sender_memory.get())) != nullptr);
  REQUIRE(becomes([&] { return (void)joined.b_worker->progress(), sends[1]->done; }));
  for (Request* send : sends) joined.b->release(send);
  joined.leave();
  REQUIRE(becomes([&] { return joined.progress(), receives[0]->done && receives[1]->done; }));
  for (Request* receive : receives) CHECK(receive->failure == nullptr);
}

}  // namespace gyre::test
