// What two ends say to each other: read as it was written; what is cut short, too long or random is an error, never a crash.
#include "plugin/greeting.h"

#include <algorithm>
#include <random>

#include "test/catch.h"

using namespace gyre;
using namespace gyre::plugin;

namespace {

Identity greeting_identity(std::string name = "host, process 1, eth0") {
  Identity identity;
  identity.boot = 1, identity.pids = 2, identity.ipc = 3, identity.shm = 4;
  identity.probe_address = 5, identity.probe_value = 6, identity.tuner_file = 8;
  identity.pid = 7;
  identity.name = std::move(name);
  return identity;
}

bool same_identity(const Identity& a, const Identity& b) {
  return a.boot == b.boot && a.pids == b.pids && a.ipc == b.ipc && a.shm == b.shm && a.probe_address == b.probe_address &&
         a.probe_value == b.probe_value && a.tuner_file == b.tuner_file && a.pid == b.pid && a.name == b.name;
}

bool printable(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c >= ' ' && c <= '~'; });
}

}  // namespace

TEST_CASE("greeting: a hello and an offer are read as they were written") {
  Hello hello{{}, 42, greeting_identity()};
  fill_random(hello.cookie);
  const auto read = decode_hello(encode(hello));
  REQUIRE(read);
  CHECK(read->cookie == hello.cookie);
  CHECK(read->number == 42);
  CHECK(same_identity(read->from, hello.from));
  const auto offer = decode_offer(encode(Offer{5, greeting_identity("")}));
  REQUIRE(offer);
  CHECK(offer->ways == 5);
  CHECK(same_identity(offer->from, greeting_identity("")));
}

TEST_CASE("greeting: cut short anywhere it is an error; only the name may be shorter") {
  const std::string name(20, 'n');
  const std::string hello = encode(Hello{{}, 1, greeting_identity(name)}), offer = encode(Offer{1, greeting_identity(name)});
  REQUIRE(hello.size() == offer.size());
  for (size_t size = 0; size < hello.size(); ++size) {
    const bool whole = size >= hello.size() - name.size();
    const auto short_hello = decode_hello(hello.substr(0, size));
    const auto short_offer = decode_offer(offer.substr(0, size));
    REQUIRE(bool(short_hello) == whole);
    REQUIRE(bool(short_offer) == whole);
    if (!whole) REQUIRE(short_hello.error().code == Code::remote);
  }
}

TEST_CASE("greeting: of a name, what fits is sent; more than that is an error") {
  const std::string longest = encode(Offer{1, greeting_identity(std::string(1000, 'n'))});
  const auto read = decode_offer(longest);
  REQUIRE(read);
  CHECK(read->from.name == std::string(256, 'n'));
  CHECK_FALSE(decode_offer(longest + "n"));
  CHECK_FALSE(decode_hello(std::string(60000, '\1')));
}

TEST_CASE("greeting: a name is fit to be logged, whatever it is made of") {
  std::string name;
  for (int c = 0; c < 256; ++c) name += static_cast<char>(c);
  const auto read = decode_hello(encode(Hello{{}, 1, greeting_identity(name)}));
  REQUIRE(read);
  CHECK(read->from.name.size() == 256);
  CHECK(printable(read->from.name));
}

TEST_CASE("greeting: another version of the protocol is named, also where it has another size") {
  std::string bytes = encode(Hello{{}, 1, greeting_identity()});
  bytes[0] = 3;
  const auto read = decode_hello(bytes);
  REQUIRE_FALSE(read);
  CHECK(read.error().code == Code::invalid_usage);
  CHECK(read.error().what.find("version 3") != std::string::npos);
  for (const size_t size : {size_t{8}, size_t{20}, size_t{2000}}) {
    bytes.resize(size);
    const auto other = decode_offer(bytes);
    REQUIRE_FALSE(other);
    CHECK(other.error().what.find("version 3") != std::string::npos);
  }
}

TEST_CASE("greeting: random bytes are an error or a greeting, with a name that can be logged") {
  std::mt19937 random(3);
  const size_t whole = encode(Offer{}).size();
  int read = 0;
  for (int i = 0; i < 20000; ++i) {
    std::string bytes(random() % (whole + 300), '\0');
    for (char& byte : bytes) byte = static_cast<char>(random());
    // Every other one with the right version, or none would be read.
    if (i % 2 == 0 && bytes.size() >= 8) bytes.replace(0, 8, encode(Offer{}), 0, 8);
    const auto hello = decode_hello(bytes);
    const auto offer = decode_offer(bytes);
    REQUIRE(bool(hello) == bool(offer));
    if (!hello) continue;
    ++read;
    REQUIRE(printable(hello->from.name));
    REQUIRE_FALSE(greeting_identity().may_read(hello->from));
  }
  CHECK(read > 100);
}

TEST_CASE("greeting: a way is one of four, and what follows it is why") {
  int known = 0;
  for (int c = 0; c < 256; ++c) {
    const std::string bytes = std::string(1, static_cast<char>(c)) + "why";
    std::string_view rest = bytes;
    const auto way = decode_way(rest);
    REQUIRE(bool(way) == (c < 4));
    REQUIRE(rest == (way ? "why" : bytes));
    known += bool(way);
  }
  CHECK(known == 4);
  std::string_view none;
  CHECK_FALSE(decode_way(none));
  for (const auto kind : {WayKind::in_place, WayKind::by_copies, WayKind::network, WayKind::verbs}) {
    const std::string refusal = encode_refusal(kind, "no room");
    const std::string attempt = encode_attempt(kind);
    std::string_view text = refusal;
    CHECK(decode_way(text) == kind);
    CHECK(text == "no room");
    text = attempt;
    CHECK(decode_way(text) == kind);
    CHECK(text.empty());
  }
}

TEST_CASE("greeting: memory is shared within one kernel where the IPC namespace or /dev/shm is the same; unknown is not the same") {
  const Identity own = greeting_identity();
  CHECK(own.shares_memory_with(own));
  auto other = own;
  other.boot = 9;
  CHECK_FALSE(own.shares_memory_with(other));
  other = own;
  other.ipc = 9;
  CHECK(own.shares_memory_with(other));
  other.shm = 9;
  CHECK_FALSE(own.shares_memory_with(other));
  other.ipc = own.ipc;
  CHECK(own.shares_memory_with(other));
  auto unknown = own;
  unknown.boot = 0;
  CHECK_FALSE(unknown.shares_memory_with(unknown));
  unknown = own;
  unknown.ipc = unknown.shm = 0;
  CHECK_FALSE(unknown.shares_memory_with(unknown));
}

TEST_CASE("greeting: memory is read in place where the probe is found there, and only there") {
  const Identity self = Identity::self("eth0");
  CHECK(self.name.find("eth0") != std::string::npos);
  CHECK(self.name.find(std::to_string(self.pid)) != std::string::npos);
  CHECK(self.probe_value != 0);
  CHECK(Identity::self("eth1").probe_value == self.probe_value);  // of the process
  REQUIRE(self.may_read(self));
  auto other = self;
  other.probe_value ^= 2;
  CHECK_FALSE(self.may_read(other));
  other = self;
  other.probe_address = 8;
  CHECK_FALSE(self.may_read(other));
  other = self;
  other.pids ^= 1;
  CHECK_FALSE(self.may_read(other));
  other = self;
  other.pid = 0x7fffffff;
  CHECK_FALSE(self.may_read(other));
  other = self;
  other.boot ^= 1;
  CHECK_FALSE(self.may_read(other));
}
