// The handle: what a listener writes is read again, and nothing else is.
#include "plugin/handle.h"

#include <arpa/inet.h>

#include <cstring>
#include <random>

#include "test/catch.h"
#include "test/plugin/loopback_provider.h"

using namespace gyre;
using namespace gyre::plugin;

namespace {

transport::SocketAddress handle_v6_address() {
  sockaddr_in6 v6{};
  v6.sin6_family = AF_INET6;
  v6.sin6_port = htons(4711);
  v6.sin6_scope_id = 3;
  inet_pton(AF_INET6, "fe80::1:2", &v6.sin6_addr);
  transport::SocketAddress address;
  std::memcpy(&address.bytes, &v6, address.length = sizeof v6);
  return address;
}

struct Written {
  explicit Written(const transport::SocketAddress& address) {
    fill_random(content.cookie);
    content.address = address;
    write_handle(Handle(bytes), content);
  }
  Handle handle() { return Handle(bytes); }
  std::array<std::byte, handle_bytes> bytes{};
  HandleContent content;
};

}  // namespace

TEST_CASE("handle: address and cookie are read as they were written, with the scope of an IPv6 address") {
  const bool v6 = GENERATE(false, true);
  Written written(v6 ? handle_v6_address() : test::loopback_address(7, 80));
  const auto read = read_handle(written.handle());
  REQUIRE(read);
  CHECK(read->cookie == written.content.cookie);
  CHECK(read->address.length == written.content.address.length);
  CHECK(std::memcmp(&read->address.bytes, &written.content.address.bytes, read->address.length) == 0);
  CHECK(text_of(read->address) == (v6 ? "[fe80::1:2%3]:4711" : "127.0.0.7:80"));
}

TEST_CASE("handle: one bit that is wrong makes it no handle, wherever it is but in the sender's note") {
  Written written(test::loopback_address(1, 1));
  size_t refused = 0;
  for (size_t bit = 0; bit < 56 * 8; ++bit) {
    auto bytes = written.bytes;
    bytes[bit / 8] ^= std::byte(1 << bit % 8);
    const auto read = read_handle(Handle(bytes));
    refused += !read && read.error().code == Code::invalid_usage;
  }
  CHECK(refused == 56 * 8);
}

TEST_CASE("handle: zeros, text and random bytes are none") {
  std::array<std::byte, handle_bytes> bytes{};
  CHECK_FALSE(read_handle(Handle(bytes)));
  bytes.fill(std::byte{'x'});
  CHECK_FALSE(read_handle(Handle(bytes)));
  std::mt19937 random(1);
  for (int i = 0; i < 1000; ++i) {
    for (auto& byte : bytes) byte = static_cast<std::byte>(random());
    if (i % 2 == 0) std::memcpy(bytes.data(), Written(test::loopback_address(1)).bytes.data(), 8);  // the right start
    REQUIRE_FALSE(read_handle(Handle(bytes)));
  }
}

TEST_CASE("handle: the version and the family of the address are looked at, and the error says what to do") {
  Written written(test::loopback_address(1, 1));
  written.bytes[7] = std::byte{2};
  const auto read = read_handle(written.handle());
  REQUIRE_FALSE(read);
  CHECK(read.error().what.find("same plugin") != std::string::npos);
  transport::SocketAddress unix_address;
  unix_address.bytes.ss_family = AF_UNIX;
  CHECK_FALSE(read_handle(Written(unix_address).handle()));
}

TEST_CASE("handle: the sender's note lies beside what is read") {
  Written written(handle_v6_address());
  CHECK(attempt_of(written.handle()) == 0);
  note_attempt(written.handle(), ~uint64_t{0});
  CHECK(attempt_of(written.handle()) == ~uint64_t{0});
  CHECK(read_handle(written.handle()));
  for (size_t i = 64; i < handle_bytes; ++i) REQUIRE(written.bytes[i] == std::byte{0});
}

TEST_CASE("handle: cookies differ") {
  Cookie one{}, other{};
  fill_random(one);
  fill_random(other);
  CHECK(one != other);
  CHECK(one != Cookie{});
}
