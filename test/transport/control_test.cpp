// Control over real sockets: frames, strangers that send something else, and peers that go.
#include "transport/control.h"

#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <csignal>
#include <cstring>
#include <random>

#include "test/becomes.h"
#include "test/catch.h"
#include "test/transport/loopback_address.h"

using namespace gyre;
using namespace gyre::transport;
using namespace std::string_literals;

namespace {

constexpr std::chrono::seconds control_silence{5};

// A listening socket, what came to it, and the other end: one of ours, or a stranger's bare socket.
struct Ends {
  Ends() : listening(*listen_at(test::loopback_address(1))) {}
  Control& ours() {
    other = Control::to(listening.address, control_silence);
    take();
    return other;
  }
  int stranger() {
    bare = UniqueFd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    REQUIRE(::connect(bare.get(), reinterpret_cast<const sockaddr*>(&listening.address.bytes), listening.address.length) == 0);
    take();
    return bare.get();
  }
  void take() {
    UniqueFd fd;
    REQUIRE(test::becomes([&] { return bool(fd = accept_at(listening)); }));
    here = Control(std::move(fd), control_silence);
  }
  void say(std::string_view bytes) { REQUIRE(::send(bare.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL) == ssize_t(bytes.size())); }

  ListeningSocket listening;
  Control here, other;
  UniqueFd bare;
};

// The next frame, or none where the connection ends before one.
std::optional<Frame> next_frame(Control& control) {
  std::optional<Frame> frame;
  REQUIRE(test::becomes([&] { return (frame = control.receive()) || !control.ended().empty(); }));
  return frame;
}

std::string header_bytes(uint32_t magic, uint32_t kind, uint32_t bytes) {
  const std::array<uint32_t, 3> words{magic, kind, bytes};
  return {reinterpret_cast<const char*>(words.data()), sizeof words};
}
constexpr uint32_t right_magic = 0x314e5947;

}  // namespace

TEST_CASE("control: frames of any size arrive whole and in order, both ways") {
  Ends ends;
  Control& other = ends.ours();
  const std::vector<size_t> sizes{0, 1, 12, 4096, max_frame_bytes - 1, max_frame_bytes};
  for (size_t i = 0; i < sizes.size(); ++i) {
    other.send(static_cast<uint32_t>(i), std::string(sizes[i], static_cast<char>('a' + i)));
    ends.here.send(static_cast<uint32_t>(100 + i), "answer " + std::to_string(i));
  }
  for (size_t i = 0; i < sizes.size(); ++i) {
    std::optional<Frame> frame;
    std::optional<Frame> answer;
    REQUIRE(test::becomes([&] {
      if (!answer) answer = other.receive();  // also sends what is left
      return (frame = ends.here.receive()) || !ends.here.ended().empty();
    }));
    REQUIRE(frame);
    CHECK(frame->kind == i);
    CHECK(frame->bytes == std::string(sizes[i], static_cast<char>('a' + i)));
    if (!answer) answer = next_frame(other);
    REQUIRE(answer);
    CHECK(answer->kind == 100 + i);
    CHECK(answer->bytes == "answer " + std::to_string(i));
  }
  CHECK(ends.here.peer().starts_with("127.0.0.1:"));
  CHECK(other.peer() == text_of(ends.listening.address));
}

TEST_CASE("control: a frame that comes in pieces is given out when its last byte is there") {
  Ends ends;
  ends.stranger();
  const std::string bytes = header_bytes(right_magic, 7, 5) + "hello";
  for (size_t i = 0; i < bytes.size(); ++i) {
    REQUIRE_FALSE(ends.here.receive());
    ends.say(bytes.substr(i, 1));
  }
  const auto frame = next_frame(ends.here);
  REQUIRE(frame);
  CHECK(frame->kind == 7);
  CHECK(frame->bytes == "hello");
  CHECK(ends.here.ended().empty());
}

TEST_CASE("control: the longest frame is given out wherever it was cut") {
  const std::string bytes = header_bytes(right_magic, 7, max_frame_bytes) + std::string(max_frame_bytes, 'x');
  for (size_t missing = 1; missing <= 16; ++missing) {
    Ends ends;
    ends.stranger();
    ends.say(bytes.substr(0, bytes.size() - missing));
    int unread = 1;
    REQUIRE(test::becomes([&] { return !ends.here.receive() && ::ioctl(ends.here.fd(), FIONREAD, &unread) == 0 && unread == 0; }));
    ends.say(bytes.substr(bytes.size() - missing));
    const auto frame = next_frame(ends.here);
    REQUIRE(frame);
    REQUIRE(frame->bytes.size() == max_frame_bytes);
  }
}

TEST_CASE("control: who sends what is no frame is a stranger, known by its first wrong byte, and no length of its is believed") {
  const auto said = GENERATE(values<std::string>({
      "G"s,
      "GET / HTTP/1.1\r\nHost: here\r\n\r\n"s,
      "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"s,
      "GYX"s,
      "\0"s,
      std::string(100000, 'x'),
      header_bytes(0x324e5947, 1, 0),
      header_bytes(right_magic, 1, max_frame_bytes + 1),
      header_bytes(right_magic, 1, ~0U),
  }));
  Ends ends;
  ends.stranger();
  ends.say(said);
  // "G" is how a frame begins, too.
  if (said == "G") {
    for (int i = 0; i < 100; ++i) REQUIRE_FALSE(ends.here.receive());
    CHECK_FALSE(ends.here.stranger());
    ends.say("E");
  }
  CHECK_FALSE(next_frame(ends.here));
  CHECK(ends.here.stranger());
  CHECK(ends.here.ended().find("no frame") != std::string::npos);
}

TEST_CASE("control: random bytes are a stranger's") {
  std::mt19937 random(2);
  for (int round = 0; round < 20; ++round) {
    Ends ends;
    ends.stranger();
    std::string bytes(200, '\0');
    for (char& byte : bytes) byte = static_cast<char>(random());
    bytes[0] = 'x';
    ends.say(bytes);
    REQUIRE_FALSE(next_frame(ends.here));
    REQUIRE(ends.here.stranger());
  }
}

TEST_CASE("control: who says nothing is no stranger yet, and what is half said is no frame at the end") {
  Ends ends;
  ends.stranger();
  for (int i = 0; i < 1000; ++i) REQUIRE_FALSE(ends.here.receive());
  CHECK(ends.here.ended().empty());
  const std::string half = GENERATE(""s, "GY"s, header_bytes(right_magic, 1, 10), header_bytes(right_magic, 1, 10) + "123456789");
  ends.say(half);
  ends.bare = UniqueFd();
  CHECK_FALSE(next_frame(ends.here));
  CHECK(ends.here.ended().find("closed") != std::string::npos);
  CHECK_FALSE(ends.here.stranger());
}

TEST_CASE("control: what a peer said before its end is still given out") {
  Ends ends;
  ends.ours().send(1, "one");
  ends.other.send(2, "two");
  ends.other = Control();
  CHECK(next_frame(ends.here)->bytes == "one");
  CHECK(next_frame(ends.here)->bytes == "two");
  CHECK_FALSE(next_frame(ends.here));
  CHECK_FALSE(ends.here.ended().empty());
}

TEST_CASE("control: a connection that was reset has ended, for who reads and for who writes") {
  const bool writes = GENERATE(false, true);
  Ends ends;
  ends.stranger();
  const linger at_once{1, 0};
  ::setsockopt(ends.bare.get(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
  ends.bare = UniqueFd();
  if (writes) {
    REQUIRE(test::becomes([&] { return ends.here.send(1, std::string(1000, 'x')), !ends.here.ended().empty(); }));
  } else {
    CHECK_FALSE(next_frame(ends.here));
  }
  CHECK_FALSE(ends.here.ended().empty());
  CHECK_FALSE(ends.here.refused());
  CHECK(ends.here.silent());
  ends.here.send(1, "nobody hears this");
  CHECK_FALSE(ends.here.receive());
}

TEST_CASE("control: where nobody listens it is refused") {
  transport::SocketAddress nobody;
  {
    const auto listening = listen_at(test::loopback_address(1));
    REQUIRE(listening);
    nobody = listening->address;
  }
  Control control = Control::to(nobody, control_silence);
  control.send(1, "hello");
  CHECK_FALSE(next_frame(control));
  CHECK(control.refused());
  CHECK_FALSE(control.stranger());
}

TEST_CASE("control: more than the kernel takes at once is kept and sent on") {
  Ends ends;
  Control& other = ends.ours();
  constexpr int frames = 200;  // 12 MiB
  for (int i = 0; i < frames; ++i) other.send(static_cast<uint32_t>(i), std::string(max_frame_bytes, static_cast<char>(i)));
  for (int i = 0; i < frames; ++i) {
    std::optional<Frame> frame;
    REQUIRE(test::becomes([&] {
      (void)other.receive();
      return (frame = ends.here.receive()) || !ends.here.ended().empty();
    }));
    REQUIRE(frame);
    REQUIRE(frame->kind == static_cast<uint32_t>(i));
    REQUIRE(frame->bytes == std::string(max_frame_bytes, static_cast<char>(i)));
  }
}

TEST_CASE("control: an address of another host can't be listened at, and the error names it") {
  auto address = test::loopback_address(1);
  reinterpret_cast<sockaddr_in*>(&address.bytes)->sin_addr.s_addr = htonl(0xc0000201);  // 192.0.2.1, for documentation
  const auto listening = listen_at(address);
  REQUIRE_FALSE(listening);
  CHECK(listening.error().code == Code::system);
  CHECK(listening.error().what.find("192.0.2.1") != std::string::npos);
}

TEST_CASE("control: a child of a process that is killed does not keep its connections and listeners") {
  Ends ends;
  Control& other = ends.ours();
  const auto second = *listen_at(test::loopback_address(1));
  std::array<int, 2> pipe{};
  REQUIRE(::pipe(pipe.data()) == 0);
  const UniqueFd started(pipe[0]), held(pipe[1]);
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    ::alarm(60);
    // What this process does with the numbers that it has must not touch the parent's connections either.
    ::close(other.fd());
    (void)::write(held.get(), "x", 1);
    ::pause();
    ::_exit(0);
  }
  char byte = 0;
  CHECK(::read(started.get(), &byte, 1) == 1);
  other.send(7, "still here");
  const auto frame = next_frame(ends.here);
  CHECK((frame && frame->bytes == "still here"));
  other = Control();  // as the kernel does when we are killed
  CHECK(test::becomes([&] { return !ends.here.receive() && !ends.here.ended().empty(); }));
  const auto address = ends.listening.address;
  ends.listening = ListeningSocket();
  Control late = Control::to(address, control_silence);
  CHECK(test::becomes([&] { return !late.receive() && !late.ended().empty(); }));
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
}

TEST_CASE("control: who hangs up has come to its end for the other") {
  Ends ends;
  Control& other = ends.ours();
  other.send(1, "last");
  other.hang_up();
  const auto frame = next_frame(ends.here);
  CHECK((frame && frame->bytes == "last"));
  CHECK_FALSE(next_frame(ends.here));
  CHECK_FALSE(ends.here.ended().empty());
}
