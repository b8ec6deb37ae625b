// The TCP backend between two workers of this process, and a process that is killed.
#include "transport/tcp.h"

#include <linux/tcp.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>

#include "test/catch.h"
#include "test/slow_builds.h"
#include "test/transport/tcp_pair.h"
#include "transport/tcp/worker.h"

using namespace gyre;
using namespace gyre::transport;
using namespace gyre::test;

TEST_CASE("tcp: a connection is ready once answered, with the hello on both sides") {
  Pair p({});
  CHECK(p.left->hello() == "hello");
  CHECK(p.right->hello() == "hello");
  CHECK(*p.listener->accept() == nullptr);
  CHECK(p.left->fifo().posted());
  CHECK(p.left->fifo().direct());
}

TEST_CASE("tcp: messages of all sizes, from slots and from memory, to slots and to memory, both ways at once") {
  const Slots slots = GENERATE(Slots{8, 64 << 10}, Slots{2, 5000}, Slots{3, 1 << 20});
  Pair p(slots);
  CHECK(both_ways(p, test::sanitized ? 50 : 200, slots.bytes) == "");
}

TEST_CASE("tcp: a socket has room for all that may be under way, unless the system grants less") {
  const auto socket = [] { return UniqueFd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)); };
  const auto room = [](const UniqueFd& fd, int option) {
    int bytes = 0;
    socklen_t length = sizeof bytes;
    REQUIRE(::getsockopt(fd.get(), SOL_SOCKET, option, &bytes, &length) == 0);
    return bytes;
  };
  const UniqueFd untouched = socket();
  const UniqueFd asked = socket();
  const int most = 1 << 30;
  for (const int option : {SO_RCVBUF, SO_SNDBUF}) REQUIRE(::setsockopt(asked.get(), SOL_SOCKET, option, &most, sizeof most) == 0);
  const int granted = std::min(room(asked, SO_RCVBUF), room(asked, SO_SNDBUF)) / 2;
  if (granted < 1 << 20) WARN("net.core.rmem_max and wmem_max grant less than 1 MiB: not checked that there is room");
  // Of a few bytes half a MiB is made, with less of which the kernel is slow.
  for (const size_t bytes : {size_t{1}, size_t{1} << 20, size_t{1} << 30}) {
    const UniqueFd bounded = socket();
    const UniqueFd roomy = socket();
    tcp::bound_bytes_under_way(bounded.get(), bytes, false);
    tcp::bound_bytes_under_way(roomy.get(), bytes, true);
    const auto bound = static_cast<int>(std::max<size_t>(bytes, 512 << 10));
    for (const int option : {SO_RCVBUF, SO_SNDBUF}) {
      CHECK(room(bounded, option) == room(untouched, option));
      // No more than that either: a sender must not be rid of many more messages than slots hold.
      const int64_t expected = option == SO_RCVBUF ? int64_t{2} * bound : bound;
      CHECK(room(roomy, option) == (bound <= granted ? expected : room(untouched, option)));
    }
  }
}

TEST_CASE("tcp: sockets with the smallest buffers carry what they carry, in parts") {
  Pair p({4, 256 << 10}, tiny);
  CHECK(both_ways(p, 60, 256 << 10) == "");
}

TEST_CASE("tcp: credits messages are under way without the receiver's help, and no more") {
  const int buffer_bytes = GENERATE(0, tiny);
  Pair p({4, 1 << 20}, buffer_bytes);
  auto& out = p.left->fifo();
  const auto data = pattern(1, 1 << 20);
  for (uint64_t i = 0; i < 4; ++i) REQUIRE(out.send_from(i, data.data(), data.size()));
  // What the kernel has not taken stays; it may take some.
  uint64_t more = 4;
  for (int i = 0; i < 100; ++i) {
    p.left_worker->progress();
    if (out.send_from(more, data.data(), data.size())) ++more;
    REQUIRE(out.sent() - out.completed() <= 4);
  }
  for (uint64_t i = 0; i < more; ++i) {
    REQUIRE(p.right->fifo().expect(i, nullptr, data.size()));
    REQUIRE(wait_for([&] {
      p.progress();
      return p.right->fifo().front().data != nullptr;
    }));
    CHECK(std::equal(data.begin(), data.end(), p.right->fifo().front().data));
    p.right->fifo().pop();
  }
}

TEST_CASE("tcp: who only receives acknowledges every second small message") {
  Pair p({4, 4096});
  const bool connector_sends = GENERATE(true, false);
  auto& out = connector_sends ? p.left->fifo() : p.right->fifo();
  auto& in = connector_sends ? p.right->fifo() : p.left->fifo();
  const auto data = pattern(1, 100);
  constexpr uint64_t messages = 400;
  for (uint64_t i = 0; i < messages; ++i) {
    REQUIRE(in.expect(i, nullptr, data.size()));
    REQUIRE(send_copy(out, i, data));
    REQUIRE(wait_for([&] { return in.front().data != nullptr; }));
    in.pop();
  }
  tcp_info info{};
  socklen_t length = sizeof info;
  REQUIRE(::getsockopt(dynamic_cast<tcp::TcpFifo&>(out).waits().fd, IPPROTO_TCP, TCP_INFO, &info, &length) == 0);
  CHECK(info.tcpi_data_segs_out >= messages);
  CHECK(info.tcpi_segs_in > messages / 4);
  CHECK(info.tcpi_segs_in < messages * 3 / 4);
}

TEST_CASE("tcp: nothing is shown before it is announced, and another message than announced is placed nowhere") {
  Pair p({4, 64 << 10});
  auto& out = p.left->fifo();
  auto& in = p.right->fifo();
  const size_t bytes = GENERATE(4u, 10000u);
  const auto data = pattern(3, bytes);
  std::vector<std::byte> untouched(bytes);
  REQUIRE(out.send_from(1, data.data(), bytes));
  for (int i = 0; i < 100; ++i) p.progress();
  CHECK(in.front().data == nullptr);
  const bool other_plan = GENERATE(true, false);
  REQUIRE(in.expect(other_plan ? 2 : 1, untouched.data(), other_plan ? bytes : bytes - 1));
  REQUIRE(wait_for([&] { return in.front().data != nullptr; }));
  CHECK(in.front().plan == 1);
  CHECK(in.front().bytes == bytes);
  CHECK(untouched == std::vector<std::byte>(bytes));
  CHECK(p.right_worker->failure() == nullptr);
}

TEST_CASE("tcp: who sleeps is woken by the messages that he awaits") {
  Pair p({4, 4096});
  auto& in = p.right->fifo();
  const auto data = pattern(1, 100);
  std::vector<pollfd> awaited;
  const auto ready = [&](std::chrono::milliseconds limit) {
    awaited.clear();
    if (!p.right_worker->arm(awaited)) return -1;
    return ::poll(awaited.data(), awaited.size(), static_cast<int>(limit.count()));
  };
  CHECK(ready({}) == 0);
  CHECK(awaited.empty());
  REQUIRE(in.expect(1, nullptr, 100));
  CHECK(ready({}) == 0);
  CHECK(awaited.size() == 1);
  REQUIRE(send_copy(p.left->fifo(), 1, data));
  CHECK(ready(patience) == 1);
  REQUIRE(wait_for([&] { return in.front().data != nullptr; }));
  in.pop();
  // What was not announced is no reason to wake, until it is.
  REQUIRE(send_copy(p.left->fifo(), 2, data));
  CHECK(ready(std::chrono::milliseconds(20)) == 0);
  REQUIRE(in.expect(2, nullptr, 100));
  CHECK(ready(patience) == 1);
  p.left.reset();
  CHECK(ready(patience) == 1);
}

TEST_CASE("tcp: who sleeps is woken by room for what the kernel did not take") {
  Pair p({2, 1 << 20}, tiny);
  const auto data = pattern(1, 1 << 20);
  auto& out = p.left->fifo();
  REQUIRE(out.send_from(1, data.data(), data.size()));
  p.left_worker->progress();
  REQUIRE(out.completed() == 0);
  std::vector<pollfd> awaited;
  REQUIRE(wait_for([&] {  // until its peer's kernel has all that it takes
    awaited.clear();
    p.left_worker->progress();
    return p.left_worker->arm(awaited) && ::poll(awaited.data(), awaited.size(), 20) == 0;
  }));
  REQUIRE(awaited.size() == 1);
  std::vector<std::byte> place(1 << 20);
  auto& in = p.right->fifo();
  REQUIRE(in.expect(1, place.data(), place.size()));
  in.front();
  CHECK(::poll(awaited.data(), awaited.size(), static_cast<int>(std::chrono::milliseconds(patience).count())) == 1);
}

TEST_CASE("tcp: what does not fit a slot is refused aloud") {
  Pair p({4, 4096});
  CHECK(p.left->fifo().reserve(4097) == nullptr);
  REQUIRE(p.left_worker->failure() != nullptr);
  CHECK(p.left_worker->failure()->what.find("a message of 4097 bytes does not fit a slot of 4096") != std::string::npos);
  CHECK_FALSE(p.right->fifo().expect(0, nullptr, 4097));
  CHECK(p.right->failure() != nullptr);
}

TEST_CASE("tcp: a peer that closes is a failure only for who still awaits something") {
  Pair p({4, 4096});
  auto& in = p.right->fifo();
  REQUIRE(send_copy(p.left->fifo(), 1, pattern(1, 100)));
  p.left.reset();
  REQUIRE(in.expect(1, nullptr, 100));
  REQUIRE(wait_for([&] { return in.front().data != nullptr; }));
  in.pop();
  for (int i = 0; i < 100; ++i) p.right_worker->progress();
  CHECK(p.right_worker->failure() == nullptr);
  REQUIRE(in.expect(2, nullptr, 100));
  REQUIRE(wait_for([&] { return in.front().data == nullptr && p.right_worker->failure() != nullptr; }));
  CHECK(p.right_worker->failure()->what.find("the peer closed the connection") != std::string::npos);
  CHECK(p.right->failure() != nullptr);
  CHECK(in.reserve(1) == nullptr);
}

TEST_CASE("tcp: who waits for room hears of a peer that has gone, without a signal") {
  Pair p({2, 1 << 20}, tiny);
  const auto data = pattern(1, 1 << 20);
  REQUIRE(p.left->fifo().send_from(1, data.data(), data.size()));
  p.right_worker->abandon();
  p.right.reset();
  CHECK(wait_for([&] {
    p.left_worker->progress();
    return p.left_worker->failure() != nullptr;
  }));
}

TEST_CASE("tcp: slots that differ are an error on both sides, which names both") {
  auto left = *open_tcp_worker({8, 4096});
  auto right = *open_tcp_worker({4, 4096});
  auto listener = *right->listen();
  auto endpoint = *left->connect(listener->address(), "");
  std::unique_ptr<Endpoint> accepted;
  Result<bool> ready = false;
  REQUIRE(wait_for([&] {
    if (accepted == nullptr) accepted = *listener->accept();
    ready = endpoint->ready();
    return !ready && accepted != nullptr;
  }));
  CHECK(ready.error().what.find("8 credits of 4096 bytes here, but 4 of 4096 at") != std::string::npos);
  CHECK_FALSE(accepted->ready());
}

TEST_CASE("tcp: a process that is killed while it sends is a failure that names it; one that is stopped is none") {
  int fds[2];
  REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM, 0, fds) == 0);
  const pid_t child = ::fork();
  if (child == 0) {  // connects, and sends for ever
    auto worker = *open_tcp_worker({4, 64 << 10});
    std::string address(1000, '\0');
    address.resize(static_cast<size_t>(::recv(fds[1], address.data(), address.size(), 0)));
    auto endpoint = *worker->connect(address, "");
    while (!*endpoint->ready()) {
    }
    const auto data = pattern(0, 50000);
    for (uint64_t i = 0;; worker->progress()) i += endpoint->fifo().send_from(i, data.data(), data.size()) ? 1 : 0;
  }
  auto worker = *open_tcp_worker({4, 64 << 10}, std::chrono::seconds(2));
  auto listener = *worker->listen();
  const std::string address = listener->address();
  REQUIRE(::send(fds[0], address.data(), address.size(), 0) == static_cast<ssize_t>(address.size()));
  std::unique_ptr<Endpoint> endpoint;
  REQUIRE(wait_for([&] { return (endpoint = *listener->accept()) != nullptr; }));
  auto& in = endpoint->fifo();
  uint64_t expected = 0, popped = 0;
  const auto take = [&] {
    while (in.expect(expected, nullptr, 50000)) ++expected;
    if (in.front().data != nullptr) in.pop(), ++popped;
    worker->progress();
  };
  REQUIRE(wait_for([&] { return take(), popped > 50; }));
  ::kill(child, SIGSTOP);
  const auto stopped = std::chrono::steady_clock::now();
  while (std::chrono::steady_clock::now() - stopped < std::chrono::milliseconds(2500)) take();
  CHECK(worker->failure() == nullptr);
  ::kill(child, SIGKILL);
  CHECK(wait_for([&] { return take(), worker->failure() != nullptr; }));
  ::waitpid(child, nullptr, 0);
  ::close(fds[0]);
  ::close(fds[1]);
}

TEST_CASE("tcp: an address is decoded as it was encoded, and every cut of it and nonsense refused") {
  auto worker = *open_tcp_worker({});
  const std::string address = (*worker->listen())->address();
  const auto card = tcp::decode(address);
  REQUIRE(card);
  CHECK(tcp::encode(*card) == address);
  for (size_t bytes = 0; bytes < address.size(); ++bytes) CHECK_FALSE(worker->connect(address.substr(0, bytes), ""));
  CHECK_FALSE(worker->connect(address + "x", ""));
  CHECK_FALSE(worker->connect(std::string(address.size(), 'x'), ""));
  CHECK_FALSE(worker->connect(address, std::string(65, 'x')));
}

TEST_CASE("tcp: places where nobody answers are passed over, and named where none does") {
  auto worker = *open_tcp_worker({});
  auto listener = *worker->listen();
  auto card = *tcp::decode(listener->address());
  SocketAddress refuses = card.places.front();
  {
    const auto closed = *listen_at((*tcp::own_addresses()).front());
    refuses = closed.address;
  }
  auto only = card;
  only.places = {refuses};
  auto refused = *worker->connect(tcp::encode(only), "");
  Result<bool> ready = false;
  REQUIRE(wait_for([&] { return !(ready = refused->ready()); }));
  CHECK(ready.error().what.find("Connection refused") != std::string::npos);
  card.places.insert(card.places.begin(), refuses);
  auto endpoint = *worker->connect(tcp::encode(card), "second place");
  std::unique_ptr<Endpoint> accepted;
  REQUIRE(wait_for([&] {
    if (accepted == nullptr) accepted = *listener->accept();
    return *endpoint->ready() && accepted != nullptr;
  }));
  CHECK(accepted->hello() == "second place");
}

TEST_CASE("tcp: NCCL_SOCKET_IFNAME chooses the interface, and none that fits is an error that says so") {
  ::setenv("NCCL_SOCKET_IFNAME", "=lo", 1);
  auto on_loopback = tcp::own_addresses();
  ::setenv("NCCL_SOCKET_FAMILY", "AF_INET6", 1);
  auto v6 = tcp::own_addresses();
  ::setenv("NCCL_SOCKET_IFNAME", "=nosuch0", 1);
  const auto worker = open_tcp_worker({});
  const auto found = tcp_devices();
  ::unsetenv("NCCL_SOCKET_IFNAME");
  ::unsetenv("NCCL_SOCKET_FAMILY");
  REQUIRE(on_loopback);
  CHECK(text_of(on_loopback->front()) == "127.0.0.1");
  if (v6) CHECK(v6->front().bytes.ss_family == AF_INET6);
  REQUIRE_FALSE(worker);
  CHECK(worker.error().what == "no network interface fits NCCL_SOCKET_IFNAME==nosuch0 and NCCL_SOCKET_FAMILY=AF_INET6");
  CHECK(found.empty());
  CHECK(tcp_devices().size() == 1);
}

TEST_CASE("tcp: it goes over IPv6") {
  ::setenv("NCCL_SOCKET_FAMILY", "AF_INET6", 1);
  const bool there = static_cast<bool>(tcp::own_addresses());
  if (there) {
    Pair p({4, 64 << 10});
    CHECK(both_ways(p, 20, 64 << 10) == "");
  }
  ::unsetenv("NCCL_SOCKET_FAMILY");
}
