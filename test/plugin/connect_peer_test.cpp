// The sending side of connections in the making: receivers that are lost on the way, or say what they should not.
#include <cstdlib>
#include <fstream>

#include "plugin/tuner_file.h"
#include "test/folder.h"
#include "test/plugin/by_hand.h"

using namespace gyre;
using namespace gyre::plugin;
using gyre::test::contains;
using gyre::test::HandReceiver;
using gyre::test::heard;
using gyre::test::Host;
using gyre::test::say;

namespace {

constexpr auto peer_network = WayKind::network;

}  // namespace

TEST_CASE("connect: a receiver that is lost on the way is an error") {
  Host from;
  HandReceiver receiver(from);
  const int state = GENERATE(0, 1, 2);
  receiver.offer(1U << static_cast<uint32_t>(peer_network));
  if (state > 0) REQUIRE(heard(receiver.control, [&] { receiver.poll(); })->kind == static_cast<uint32_t>(plugin::Word::attempt));
  const auto worker = *transport::open_posted_loopback_worker({});
  const auto listener = *worker->listen();
  if (state > 1) {
    say(receiver.control, plugin::Word::address, listener->address());
    REQUIRE(test::becomes([&] { return receiver.poll(), from.provider.network().endpoints == 1; }));
  }
  receiver.control = Control();
  REQUIRE(receiver.fails());
  CHECK(receiver.error->code == Code::remote);
  CHECK(contains(receiver.error, "closed the connection"));
}

TEST_CASE("connect: a receiver whose GYRE_TUNER_FILE has other rules is refused by name") {
  const test::Folder folder;
  const std::string path = folder / "rules.csv";
  std::ofstream(path) << "allreduce,0,8,ring,ll,-1,-1,-1\n";
  const bool here = GENERATE(true, false);
  if (here) ::setenv("GYRE_TUNER_FILE", path.c_str(), 1);
  Host from;
  from.context();
  ::unsetenv("GYRE_TUNER_FILE");
  const uint64_t hash = tuner_file(path).hash;
  {
    HandReceiver same(from);
    same.offer(1U << static_cast<uint32_t>(peer_network), here ? hash : 0);
    REQUIRE(heard(same.control, [&] { same.poll(); })->kind == static_cast<uint32_t>(plugin::Word::attempt));
  }
  HandReceiver other(from);
  other.offer(1U << static_cast<uint32_t>(peer_network), here ? 0 : hash);
  REQUIRE(other.fails());
  CHECK(contains(other.error, "by hand"));
  CHECK(contains(other.error, "its GYRE_TUNER_FILE is not the same as here"));
}

TEST_CASE("connect: what a receiver says out of turn, or what can't be read, is an error") {
  Host from;
  HandReceiver receiver(from);
  SECTION("an address before an offer") { say(receiver.control, plugin::Word::address, "x"); }
  SECTION("a refusal before an offer") { say(receiver.control, plugin::Word::refusal, encode_refusal(peer_network, "x")); }
  SECTION("an offer that can't be read") { say(receiver.control, plugin::Word::offer, "x"); }
  SECTION("an offer of another version") { say(receiver.control, plugin::Word::offer, std::string(100, '\7')); }
  SECTION("an offer of nothing") { receiver.offer(0); }
  SECTION("an offer of ways that nobody knows") { receiver.offer(~7U); }
  SECTION("two offers") {
    receiver.offer(4);
    receiver.offer(4);
  }
  SECTION("a farewell") {
    receiver.offer(4);
    say(receiver.control, plugin::Word::farewell, {});
  }
  SECTION("a word that is none") {
    receiver.offer(4);
    receiver.control.send(99, {});
  }
  SECTION("an address where nobody is") {
    receiver.offer(4);
    say(receiver.control, plugin::Word::address, "nowhere");
  }
  SECTION("a refusal of the only way") {
    receiver.offer(4);
    say(receiver.control, plugin::Word::refusal, encode_refusal(peer_network, "not today"));
  }
  CHECK(receiver.fails());
  CHECK(attempt_of(receiver.handle) == 0);
}

TEST_CASE("connect: a refusal of another way than the one asked for is passed over") {
  Host from;
  HandReceiver receiver(from);
  receiver.offer(4);
  const auto poll = [&] { receiver.poll(); };
  REQUIRE(heard(receiver.control, poll)->kind == static_cast<uint32_t>(plugin::Word::attempt));
  say(receiver.control, plugin::Word::refusal, encode_refusal(WayKind::in_place, "not that"));
  say(receiver.control, plugin::Word::refusal, "");
  for (int i = 0; i < 100; ++i) poll();
  CHECK_FALSE(receiver.error);
}
