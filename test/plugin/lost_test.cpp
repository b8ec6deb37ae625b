// Connections that end: with an error of the transport's, with a peer that dies or says farewell, with requests under way.
#include "test/plugin/joined.h"

using namespace gyre;
using namespace gyre::plugin;
using gyre::test::contains;
using gyre::test::Host;
using gyre::test::Joined;
using gyre::test::Receive;

namespace {

// Every further call on it ends with this.
void check_lost(Comm* comm, Code code, std::string_view text) {
  const bool sends = comm->direction() == Comm::Direction::sends;
  for (int i = 0; i < 3; ++i) {
    std::optional<Error> error;
    if (sends) {
      auto sent = comm->send("x", 1, 0, nullptr);
      if (!sent) error = sent.error();
    } else {
      error = Receive(comm).error;
    }
    REQUIRE(error);
    CHECK(error->code == code);
    CHECK(contains(error, text));
  }
  CHECK(comm->counters().errors.get() == 1);
}

}  // namespace

TEST_CASE("lost: a send or receive that fails ends its connection, with the transport's code and text and the peer's name") {
  const auto code =
      GENERATE(Code::cuda, Code::system, Code::internal, Code::invalid_argument, Code::invalid_usage, Code::remote, Code::timeout);
  const bool sends = GENERATE(false, true);
  Joined joined;
  Receive before(joined.receives);
  auto* sent_before = test::send(joined.sends, "before");
  const test::Failure failure{"the card has burnt", code};
  (sends ? joined.from.provider.network().sends : joined.to.provider.network().receives) = failure;
  Receive receive(joined.receives);
  auto* request = test::send(joined.sends, "fails");
  Comm* comm = sends ? joined.sends : joined.receives;
  const auto done = sends ? test::finish(request) : test::finish(receive);
  REQUIRE_FALSE(done);
  CHECK(done.error().code == code);
  CHECK(contains(done.error(), "the card has burnt"));
  CHECK(contains(done.error(), comm->peer()));
  check_lost(comm, code, "the card has burnt");
  CHECK((sends ? joined.from : joined.to).provider.network().broken_off != nullptr);
  // What was done before stays done, and the lost one's other requests say why they are not.
  CHECK_FALSE((sends ? request : receive.request)->comm->test(*(sends ? request : receive.request), nullptr));
  if (sends)
    CHECK(test::finish(before));
  else
    CHECK(test::finish(sent_before));
}

TEST_CASE("lost: the peer of a lost connection is told, and its pending requests end") {
  Joined joined;
  joined.from.provider.network().sends = test::Failure{};
  Receive first(joined.receives), second(joined.receives);
  REQUIRE_FALSE(test::finish(test::send(joined.sends, "x")));
  REQUIRE(test::finish(first));
  const auto done = test::finish(second);
  REQUIRE_FALSE(done);
  CHECK(done.error().code == Code::remote);
  CHECK(second.untouched());
}

TEST_CASE("lost: the peer is told, also where the transport says nothing") {
  const bool sends = GENERATE(false, true);
  Joined joined;
  (sends ? joined.from : joined.to).provider.network().quiet = true;
  (sends ? joined.from.provider.network().sends : joined.to.provider.network().receives) = test::Failure{};
  Receive receive(joined.receives), next(joined.receives);
  auto* request = test::send(joined.sends, "x");
  const auto failed = sends ? test::finish(request) : test::finish(receive);
  REQUIRE_FALSE(failed);
  joined.from.provider.network().never_complete = true;
  const auto done = sends ? test::finish(next) : test::finish(test::send(joined.sends, "y"));
  REQUIRE_FALSE(done);
  CHECK(contains(done.error(), "closed the connection"));
}

TEST_CASE("lost: one part of a group that fails is enough") {
  Joined joined;
  Receive group(joined.receives, {1, 2, 3}, 4);
  std::vector<Request*> sends;
  for (const auto& [tag, text] : std::vector<std::pair<int, std::string_view>>{{1, "one"}, {2, "too long"}, {3, "tri"}})
    sends.push_back(test::send(joined.sends, text, tag));
  const auto done = test::finish(group);
  REQUIRE_FALSE(done);
  CHECK(contains(done.error(), "longer"));
  CHECK(Receive(joined.receives).error);
}

TEST_CASE("lost: memory that is given up while a request uses it ends the connection, and is not touched any more") {
  Joined joined;
  std::string place(64, ' ');
  auto* memory = *joined.receives->register_memory(place.data(), place.size(), MemoryKind::host);
  CHECK(joined.to.provider.network().registered == 1);
  Receive receive(joined.receives, {0}, 64, memory);
  CHECK(joined.receives->deregister(memory));
  CHECK(joined.to.provider.network().registered == 0);
  CHECK(joined.to.provider.network().broken_off != nullptr);
  // The peer may have been told already.
  (void)joined.sends->send("too late", 8, 0, nullptr);
  const auto done = test::finish(receive);
  REQUIRE_FALSE(done);
  CHECK(contains(done.error(), "deregistered"));
  CHECK(receive.untouched());
}

TEST_CASE("lost: memory that no request uses is given up without harm, also where a done request used it") {
  Joined joined;
  std::string place(64, ' ');
  auto* memory = *joined.sends->register_memory(place.data(), place.size(), MemoryKind::host);
  auto* other = *joined.sends->register_memory(place.data(), 10, MemoryKind::host);
  Receive receive(joined.receives);
  auto* request = test::send(joined.sends, "x", 0, memory);
  CHECK(joined.sends->deregister(other));
  CHECK(test::finish(receive));
  CHECK(test::finish(request));
  CHECK(joined.sends->deregister(memory));
  const auto again = joined.sends->deregister(memory);
  REQUIRE_FALSE(again);
  CHECK(again.error().code == Code::invalid_argument);
  test::check_joined(joined.sends, joined.receives);
}

TEST_CASE("lost: memory that a connection has registered twice may be given up once while it is in use") {
  Joined joined;
  std::string place(64, ' ');
  auto* memory = *joined.receives->register_memory(place.data(), place.size(), MemoryKind::host);
  REQUIRE(*joined.receives->register_memory(place.data(), place.size(), MemoryKind::host) == memory);
  Receive receive(joined.receives, {0}, 64, memory);
  CHECK(joined.receives->deregister(memory));
  auto* request = test::send(joined.sends, "still there");
  CHECK(test::finish(receive));
  CHECK(receive.text() == "still there");
  CHECK(test::finish(request));
  Receive last(joined.receives, {0}, 64, memory);
  CHECK(joined.receives->deregister(memory));
  CHECK_FALSE(test::finish(last));
}

TEST_CASE("lost: memory of another connection in the group that is in use there stays, as often as it is registered") {
  Host from, to;
  Joined one(from, to), other(from, to);
  std::string place(64, ' ');
  auto* memory = *one.receives->register_memory(place.data(), place.size(), MemoryKind::host);
  REQUIRE(*other.receives->register_memory(place.data(), place.size(), MemoryKind::host) == memory);
  CHECK(to.provider.network().registered == 1);
  Receive receive(other.receives, {0}, 64, memory);
  CHECK(one.receives->deregister(memory));
  CHECK(to.provider.network().registered == 1);
  auto* request = test::send(other.sends, "x");
  CHECK(test::finish(receive));
  CHECK(test::finish(request));
  // In use, and only the other's: a connection that gives up its own is lost though another still has it.
  REQUIRE(*one.receives->register_memory(place.data(), place.size(), MemoryKind::host) == memory);
  Receive last(other.receives, {0}, 64, memory);
  CHECK(other.receives->deregister(memory));
  CHECK_FALSE(test::finish(last));
  CHECK(one.receives->deregister(memory));
  CHECK(to.provider.network().registered == 0);
}

TEST_CASE("lost: memory that a connection did not give up is given up when it is closed, though its group goes on") {
  Host from, to;
  Joined stays(from, to);
  std::string place(64, ' ');
  {
    Joined joined(from, to);
    for (int i = 0; i < 2; ++i) REQUIRE(joined.sends->register_memory(place.data(), place.size(), MemoryKind::host));
    REQUIRE(stays.sends->register_memory(place.data(), 10, MemoryKind::host));
    CHECK(from.provider.network().registered == 2);
  }
  CHECK(from.provider.network().registered == 1);
  test::check_joined(stays.sends, stays.receives);
}

TEST_CASE("lost: a registration that the transport refuses is its error, and no harm to the connection") {
  Joined joined;
  joined.from.provider.network().registration = Error{Code::system, "memory can't be pinned"};
  std::string place(64, ' ');
  const auto refused = joined.sends->register_memory(place.data(), place.size(), MemoryKind::host);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().what == "memory can't be pinned");
  test::check_joined(joined.sends, joined.receives);
}

TEST_CASE("lost: closed with requests under way it comes back at once, and the peer's end with an error") {
  Host from, to;
  test::Meeting meeting(from, to);
  meeting.meet();
  const bool closes_sender = GENERATE(false, true);
  Receive receive(meeting.receives, {1});
  auto* request = test::send(meeting.sends, "of another tag", 2);
  (closes_sender ? from : to).process.close(closes_sender ? meeting.sends : meeting.receives);
  const auto done = closes_sender ? test::finish(receive) : test::finish(request);
  REQUIRE_FALSE(done);
  CHECK(done.error().code == Code::remote);
  CHECK(receive.untouched());
  (closes_sender ? to : from).process.close(closes_sender ? meeting.receives : meeting.sends);
}

TEST_CASE("lost: a peer that dies is known by its socket where the transport says nothing, with its name") {
  Host from, to;
  test::Meeting meeting(from, to);
  meeting.meet();
  to.provider.network().never_complete = true;
  Receive receive(meeting.receives);
  const std::string peer = meeting.receives->peer();
  // Given up by its own error it goes without a farewell, as a process does that is killed.
  from.provider.network().sends = test::Failure{};
  REQUIRE_FALSE(test::finish(test::send(meeting.sends, "x")));
  from.process.close(meeting.sends);
  const auto done = test::finish(receive);
  REQUIRE_FALSE(done);
  CHECK(done.error().code == Code::remote);
  CHECK(contains(done.error(), peer));
  CHECK(contains(done.error(), "closed the connection"));
  to.process.close(meeting.receives);
}

TEST_CASE("lost: after a farewell what was done stays done, and what can't come any more is an error") {
  Host from, to;
  test::Meeting meeting(from, to);
  meeting.meet();
  Receive receive(meeting.receives), never(meeting.receives);
  auto* request = test::send(meeting.sends, "the last");
  REQUIRE(test::finish(request));
  from.process.close(meeting.sends);
  CHECK(from.provider.network().broken_off == nullptr);
  REQUIRE(test::finish(receive));
  CHECK(receive.text() == "the last");
  const auto done = test::finish(never);
  REQUIRE_FALSE(done);
  CHECK(done.error().code == Code::remote);
  to.process.close(meeting.receives);
}

TEST_CASE("lost: a peer that said farewell is not taken for dead, as another is that did not") {
  Host from, to;
  test::Meeting polite(from, to), killed(from, to);
  polite.meet();
  killed.meet();
  to.provider.network().never_complete = true;
  Receive receive(killed.receives);
  from.process.close(polite.sends);
  from.provider.network().sends = test::Failure{};
  REQUIRE_FALSE(test::finish(test::send(killed.sends, "x")));
  from.process.close(killed.sends);
  CHECK_FALSE(test::finish(receive));
  CHECK(killed.receives->counters().errors.get() == 1);
  CHECK(polite.receives->counters().errors.get() == 0);
  to.process.close(polite.receives);
  to.process.close(killed.receives);
}

TEST_CASE("lost: a transport that had to stop ends the other connections of its way") {
  Host from, to;
  Joined one(from, to), other(from, to);
  Receive receive(one.receives);
  to.provider.network().stopped = true;
  const auto done = test::finish(receive);
  REQUIRE_FALSE(done);
  CHECK(contains(done.error(), "stopped"));
  check_lost(other.receives, Code::remote, "stopped");
}
