// How far a sender of small messages, which leave before anybody asked for them, can run ahead of its receiver.
#include "test/plugin/joined.h"

using namespace gyre;
using namespace gyre::plugin;
using gyre::test::Host;
using gyre::test::Joined;
using gyre::test::Receive;

namespace {

// Sends and finishes what can be; how many until there was no room for long.
size_t run_ahead(Comm* sends, int tag, size_t limit) {
  size_t count = 0;
  std::vector<Request*> open;
  static const std::array<std::string, 10> texts{"0", "1", "2", "3", "4", "5", "6", "7", "8", "9"};  // what is not received yet is read
  for (int refused = 0; refused < 1000 && count < limit;) {
    auto* request = test::send(sends, texts[static_cast<size_t>(tag)], tag);
    if (request) open.push_back(request), ++count;
    refused = request ? 0 : refused + 1;
    std::erase_if(open, [](Request* r) { return *r->comm->test(*r, nullptr); });
  }
  return count;
}

}  // namespace

TEST_CASE("ahead: a sender leaves no more than twice as many messages unreceived as there are requests, and goes on later") {
  Joined joined;
  joined.from.provider.network().eager = true;
  size_t unreceived = 0, received = 0;
  for (int round = 0; round < 4; ++round) {
    unreceived += run_ahead(joined.sends, 5, 100000);
    REQUIRE(unreceived <= 2 * max_requests);
    REQUIRE(unreceived >= max_requests - 1);  // it need not wait for each
    const size_t taken = round == 3 ? unreceived : 300;
    for (size_t i = 0; i < taken; ++i, --unreceived, ++received) {
      Receive receive(joined.receives, {5});
      REQUIRE(test::finish(receive));
      REQUIRE(receive.text() == "5");
    }
  }
  CHECK(unreceived == 0);
  CHECK(received > 3 * max_requests);
  test::check_joined(joined.sends, joined.receives);
}

TEST_CASE("ahead: where long messages are copied, a sender leaves no more than 32 MiB and a message unreceived") {
  Host from({WayKind::by_copies}), to({WayKind::by_copies});
  Joined joined(from, to);
  from.provider.of(WayKind::by_copies).eager = true;
  const std::string text(GENERATE(size_t{1} << 20, size_t{20} << 20), 'x');
  size_t ahead = 0;
  std::vector<Request*> open;
  for (int refused = 0; refused < 1000;) {
    auto* request = test::send(joined.sends, text, 1);
    if (request) open.push_back(request), ahead += text.size();
    refused = request ? 0 : refused + 1;
    std::erase_if(open, [](Request* r) { return *r->comm->test(*r, nullptr); });
  }
  CHECK(ahead > 0);
  CHECK(ahead <= (size_t{32} << 20) + text.size());
  for (; ahead > 0; ahead -= text.size()) {
    Receive receive(joined.receives, {1}, text.size());
    REQUIRE(test::finish(receive));
    REQUIRE(receive.text() == text);
  }
}

TEST_CASE("ahead: who does not receive the messages of one tag does not hold up those of another") {
  Joined joined;
  joined.from.provider.network().eager = true;
  const size_t left = run_ahead(joined.sends, 1, GENERATE(size_t{255}, size_t{256}, size_t{100000}));
  CHECK(left <= 2 * max_requests);
  for (size_t i = 0; i < 4 * max_requests; ++i) {
    Receive receive(joined.receives, {2});
    Request* request = nullptr;
    for (int tries = 0; !request && tries < 1000; ++tries) request = test::send(joined.sends, "2", 2);
    REQUIRE(request);
    REQUIRE(test::finish(receive));
    REQUIRE(test::finish(request));
  }
  for (size_t i = 0; i < left; ++i) {
    Receive receive(joined.receives, {1});
    REQUIRE(test::finish(receive));
    REQUIRE(receive.text() == "1");
  }
}
