// The TCP backend against raw sockets that play a peer, or something else.
#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <cstring>

#include "test/catch.h"
#include "test/transport/tcp_pair.h"
#include "transport/tcp.h"
#include "transport/tcp/worker.h"

using namespace gyre;
using namespace gyre::transport;
using namespace gyre::test;

namespace {

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
