// The TCP backend between two workers of this process, and against raw sockets that play a peer.
#include "transport/tcp.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "test/catch.h"
#include "transport/tcp/worker.h"

using namespace gyre;
using namespace gyre::transport;

namespace {

constexpr auto patience = std::chrono::seconds(20);
// Of a socket, in bytes: a fraction of the messages. With less the kernel waits for its timers between any two segments, which on a
// loopback device are as large as 64 KiB.
constexpr int tiny = 64 << 10;

template <class Done>
bool wait_for(Done done) {
  const auto end = std::chrono::steady_clock::now() + patience;
  while (!done()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::yield();
  }
  return true;
}

struct Pair {
  explicit Pair(Slots slots, int buffer_bytes = 0)
      : left_worker(*open_tcp_worker(slots, std::chrono::seconds(5), buffer_bytes)),
        right_worker(*open_tcp_worker(slots, std::chrono::seconds(5), buffer_bytes)),
        listener(*right_worker->listen()) {
    left = *left_worker->connect(listener->address(), "hello");
    const bool joined = wait_for([&] {
      if (right == nullptr) right = *listener->accept();
      return *left->ready() && right != nullptr && *right->ready();
    });
    if (!joined) throw std::runtime_error("not connected");
  }
  void progress() {
    left_worker->progress();
    right_worker->progress();
  }
  std::unique_ptr<Worker> left_worker, right_worker;
  std::unique_ptr<Listener> listener;
  std::unique_ptr<Endpoint> left, right;
};

std::vector<std::byte> pattern(uint64_t number, size_t bytes) {
  std::vector<std::byte> all(bytes);
  for (size_t i = 0; i < bytes; ++i) all[i] = static_cast<std::byte>(number * 131 + i * 7 + (i >> 8));
  return all;
}

bool send_copy(Fifo& fifo, uint64_t plan, const std::vector<std::byte>& data) {
  std::byte* slot = fifo.reserve(data.size());
  if (slot == nullptr) return false;
  if (!data.empty()) std::memcpy(slot, data.data(), data.size());
  fifo.commit(plan, data.size());
  return true;
}

/// Sends so many messages of all sizes from slots and from memory in turn, and takes as many; what is wrong, or empty. Both sides run it.
std::string exchange(Worker& worker, Fifo& fifo, uint64_t messages, size_t longest) {
  const size_t sizes[] = {0, 1, 8, 4095, 4096, 4097, 8168, 8192, longest - 1, longest};
  const auto bytes_of = [&](uint64_t i) { return std::min(sizes[i * 7 % std::size(sizes)], longest); };
  std::vector<std::vector<std::byte>> out(messages), in(messages);
  uint64_t sent = 0, expected = 0, popped = 0;
  const bool done = wait_for([&] {
    if (sent < messages) {
      if (out[sent].empty()) out[sent] = pattern(sent, bytes_of(sent));
      const bool copied = sent % 3 == 0;
      if (copied ? send_copy(fifo, sent, out[sent]) : fifo.send_from(sent, out[sent].data(), out[sent].size())) ++sent;
    }
    if (expected < messages) {
      if (in[expected].empty()) in[expected].resize(bytes_of(expected));
      std::byte* place = expected % 2 == 0 ? nullptr : in[expected].data();
      if (fifo.expect(expected, place, bytes_of(expected))) ++expected;
    }
    const Arrival a = fifo.front();
    if (a.data != nullptr) {
      const auto wanted = pattern(popped, bytes_of(popped));
      if (a.plan != popped || a.bytes != wanted.size() || !std::equal(wanted.begin(), wanted.end(), a.data)) return true;
      fifo.pop();
      ++popped;
    }
    worker.progress();
    return worker.failure() != nullptr || (popped == messages && fifo.completed() == messages);
  });
  if (worker.failure() != nullptr) return worker.failure()->what;
  if (!done) return "too long: " + std::to_string(sent) + " sent, " + std::to_string(popped) + " taken";
  return popped == messages ? "" : "message " + std::to_string(popped) + " is wrong";
}

std::string both_ways(Pair& pair, uint64_t messages, size_t longest) {
  std::string left, right;
  std::thread other([&] { left = exchange(*pair.left_worker, pair.left->fifo(), messages, longest); });
  right = exchange(*pair.right_worker, pair.right->fifo(), messages, longest);
  other.join();
  return left + right;
}

/// A socket of the system's own, connected to where a listener listens.
struct Stranger {
  explicit Stranger(const Listener& listener) {
    const auto card = *tcp::decode(listener.address());
    const auto& place = card.places.front();
    fd = UniqueFd(::socket(place.bytes.ss_family, SOCK_STREAM, 0));
    if (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&place.bytes), place.length) != 0) throw std::runtime_error("connect");
    cookie = card.cookie;
  }
  void say(const void* data, size_t bytes) const {
    if (::send(fd.get(), data, bytes, MSG_NOSIGNAL) != static_cast<ssize_t>(bytes)) throw std::runtime_error("send");
  }
  tcp::Greeting greeting(Slots slots) const {
    tcp::Greeting greeting;
    greeting.magic = tcp::greeting_magic;
    greeting.cookie = cookie;
    greeting.slot_bytes = slots.bytes;
    greeting.credits = slots.credits;
    return greeting;
  }
  /// Whether the other side has closed, once it has.
  bool dropped() const {
    char byte;
    const ssize_t bytes = ::recv(fd.get(), &byte, 1, MSG_DONTWAIT);
    return bytes == 0 || (bytes < 0 && errno != EAGAIN && errno != EWOULDBLOCK);
  }
  UniqueFd fd;
  Cookie cookie{};
};

/// A worker whose only peer is a stranger that has greeted as a peer does.
struct Played {
  explicit Played(Slots slots) : worker(*open_tcp_worker(slots)), listener(*worker->listen()), peer(*listener) {
    const auto greeting = peer.greeting(slots);
    peer.say(&greeting, sizeof greeting);
    if (!wait_for([&] { return (endpoint = *listener->accept()) != nullptr; })) throw std::runtime_error("not accepted");
  }
  std::string failure() {
    endpoint->fifo().expect(1, nullptr, 8);
    const bool failed = wait_for([&] {
      worker->progress();
      endpoint->fifo().front();
      return worker->failure() != nullptr;
    });
    return failed ? worker->failure()->what : "";
  }
  std::unique_ptr<Worker> worker;
  std::unique_ptr<Listener> listener;
  Stranger peer;
  std::unique_ptr<Endpoint> endpoint;
};

}  // namespace

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
  CHECK(both_ways(p, 200, slots.bytes) == "");
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
      const int expected = option == SO_RCVBUF ? 2 * bound : bound;
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

TEST_CASE("tcp: strangers that are silent, talk nonsense or too much are dropped, and peers connect meanwhile") {
  auto worker = *open_tcp_worker({});
  auto listener = *worker->listen();
  std::vector<Stranger> silent, talkers;
  for (int i = 0; i < 10; ++i) silent.emplace_back(*listener);
  const std::string nonsense(100000, 'x');
  for (const size_t bytes : {sizeof(tcp::Greeting), size_t{5000}, nonsense.size()}) {
    talkers.emplace_back(*listener);
    talkers.back().say(nonsense.data(), bytes);
  }
  talkers.emplace_back(*listener);
  auto guessed = talkers.back().greeting({});
  guessed.cookie[15] ^= 1;
  talkers.back().say(&guessed, sizeof guessed);
  talkers.emplace_back(*listener);
  auto long_hello = talkers.back().greeting({});
  long_hello.hello_bytes = 65;
  talkers.back().say(&long_hello, sizeof long_hello);
  for (const Stranger& talker : talkers) {
    CHECK(wait_for([&] {
      CHECK(*listener->accept() == nullptr);
      return talker.dropped();
    }));
  }
  auto other = *open_tcp_worker({});
  auto endpoint = *other->connect(listener->address(), "peer");
  std::unique_ptr<Endpoint> accepted;
  REQUIRE(wait_for([&] {
    (void)endpoint->ready();
    return (accepted = *listener->accept()) != nullptr;
  }));
  CHECK(accepted->hello() == "peer");
  CHECK(worker->failure() == nullptr);
}

TEST_CASE("tcp: more silent strangers than are kept do not keep a peer out") {
  auto worker = *open_tcp_worker({});
  auto listener = *worker->listen();
  std::vector<Stranger> silent;
  for (int i = 0; i < 70; ++i) silent.emplace_back(*listener);
  auto other = *open_tcp_worker({});
  auto endpoint = *other->connect(listener->address(), "peer");
  std::unique_ptr<Endpoint> accepted;
  CHECK(wait_for([&] {
    (void)endpoint->ready();
    return (accepted = *listener->accept()) != nullptr;
  }));
}

TEST_CASE("tcp: what is no message ends the connection with an error that names the peer") {
  Played played({4, 4096});
  tcp::Header header{tcp::message_magic, 8, 1};
  std::string wanted;
  SECTION("a wrong magic") {
    header.magic = 0x1234;
    wanted = "magic 0x1234, 8 bytes, slots have 4096";
  }
  SECTION("longer than a slot") {
    header.bytes = 4097;
    wanted = "4097 bytes, slots have 4096";
  }
  played.peer.say(&header, sizeof header);
  const std::string failure = played.failure();
  INFO(failure);
  CHECK(failure.find(wanted) != std::string::npos);
  CHECK(failure.starts_with("connection to "));
  sockaddr_in own{};
  socklen_t length = sizeof own;
  ::getsockname(played.peer.fd.get(), reinterpret_cast<sockaddr*>(&own), &length);
  CHECK(failure.find(std::to_string(ntohs(own.sin_port))) != std::string::npos);
}

TEST_CASE("tcp: a message that comes byte by byte is one message") {
  Played played({4, 4096});
  auto& in = played.endpoint->fifo();
  const tcp::Header header{tcp::message_magic, 8, 1};
  std::array<char, sizeof header + 8> bytes{};
  std::memcpy(bytes.data(), &header, sizeof header);
  std::memcpy(bytes.data() + sizeof header, "eight ch", 8);
  REQUIRE(in.expect(1, nullptr, 8));
  for (const char& byte : bytes) {
    CHECK(in.front().data == nullptr);
    played.peer.say(&byte, 1);
  }
  REQUIRE(wait_for([&] { return in.front().data != nullptr; }));
  CHECK(std::memcmp(in.front().data, "eight ch", 8) == 0);
}

TEST_CASE("tcp: a peer that ends in mid message is a failure, not a short message") {
  Played played({4, 4096});
  const tcp::Header header{tcp::message_magic, 8, 1};
  played.peer.say(&header, sizeof header);
  played.peer.say("half", 4);
  played.peer.fd = UniqueFd();
  CHECK(played.failure().find("closed the connection") != std::string::npos);
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
