// How connections are made and closed: who is polled when, handles that move, listeners that are gone.
#include <filesystem>

#include "test/plugin/joined.h"

using namespace gyre;
using namespace gyre::plugin;
using gyre::test::check_joined;
using gyre::test::contains;
using gyre::test::Host;
using gyre::test::Joined;
using gyre::test::Meeting;

namespace {

size_t open_descriptors() {
  size_t count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) ++count;
  return count;
}

}  // namespace

TEST_CASE("connect: polled for long before the other end is, it is connected as well") {
  Host from, to;
  Meeting meeting(from, to);
  SECTION("the sender first") {
    for (int i = 0; i < 5000; ++i) meeting.connect();
    CHECK_FALSE(meeting.sends);
  }
  SECTION("the receiver first") {
    for (int i = 0; i < 5000; ++i) meeting.accept();
    CHECK_FALSE(meeting.receives);
  }
  SECTION("in turns that are long") {
    for (int i = 0; i < 20 && !meeting.over(); ++i) {
      for (int j = 0; j < 500; ++j) meeting.connect();
      for (int j = 0; j < 500; ++j) meeting.accept();
    }
  }
  meeting.meet();
  check_joined(meeting.sends, meeting.receives);
  from.process.close(meeting.sends);
  to.process.close(meeting.receives);
}

TEST_CASE("connect: both ends may be of one process, thread and device") {
  Host host;
  Joined joined(host, host);
  CHECK(&joined.sends->group() == &joined.receives->group());
  check_joined(joined.sends, joined.receives);
}

TEST_CASE("connect: a listener takes several senders, and each gets its own connection") {
  Host one, other, to;
  Meeting first(one, to);
  test::HandleBytes second = first.handle;
  Comm *sends = nullptr, *receives = nullptr;
  REQUIRE(test::becomes([&] {
    first.connect();
    if (!sends) sends = *other.process.connect(other.context(), 0, second);
    if (first.receives && !receives) receives = *to.process.accept(first.listener);
    first.accept();
    return first.over() && sends && receives;
  }));
  test::Receive a(first.receives), b(receives);
  auto* from_one = test::send(first.sends, "one");
  auto* from_other = test::send(sends, "other");
  REQUIRE(test::finish(a));
  REQUIRE(test::finish(b));
  CHECK(test::finish(from_one));
  CHECK(test::finish(from_other));
  CHECK(((a.text() == "one" && b.text() == "other") || (a.text() == "other" && b.text() == "one")));
  one.process.close(first.sends);
  other.process.close(sends);
  to.process.close(first.receives);
  to.process.close(receives);
}

TEST_CASE("connect: a handle whose bytes have moved begins anew, and the old attempt does no harm") {
  Host from, to;
  Meeting meeting(from, to);
  for (int i = 0; i < 3; ++i) meeting.connect();
  CHECK(attempt_of(meeting.handle) != 0);
  test::HandleBytes moved = meeting.handle;
  Comm* sends = nullptr;
  REQUIRE(test::becomes([&] {
    sends = *from.process.connect(from.context(), 0, moved);
    meeting.accept();
    return sends && meeting.receives;
  }));
  CHECK(attempt_of(moved) == 0);
  check_joined(sends, meeting.receives);
  from.process.close(sends);
  to.process.close(meeting.receives);
}

TEST_CASE("connect: a note in the handle that is no attempt's, or another's, begins a new one") {
  Host from, to;
  Meeting meeting(from, to), other(from, to);
  other.connect();
  note_attempt(meeting.handle, GENERATE(0, 1) == 0 ? 12345 : attempt_of(other.handle));
  meeting.meet();
  check_joined(meeting.sends, meeting.receives);
  other.meet();
  check_joined(other.sends, other.receives);
  for (auto* comm : {meeting.sends, other.sends}) from.process.close(comm);
  for (auto* comm : {meeting.receives, other.receives}) to.process.close(comm);
}

TEST_CASE("connect: what is no handle is an error at once") {
  Host from;
  test::HandleBytes zeros;
  const auto made = from.process.connect(from.context(), 0, zeros);
  REQUIRE_FALSE(made);
  CHECK(made.error().code == Code::invalid_usage);
}

// Takes the second for which a listener may refuse.
TEST_CASE("connect: where nobody listens any more it is an error, and the handle can be tried again") {
  Host from, to;
  test::HandleBytes handle;
  to.process.close(*to.process.listen(to.context(), 0, handle));
  std::optional<Error> error;
  REQUIRE(test::becomes([&] {
    auto made = from.process.connect(from.context(), 0, handle);
    if (!made) error = made.error();
    return error.has_value();
  }));
  CHECK(error->code == Code::remote);
  CHECK(contains(error, "127.0.0.1"));
  CHECK(attempt_of(handle) == 0);
  CHECK(from.process.connect(from.context(), 0, handle));
  CHECK(attempt_of(handle) != 0);
}

TEST_CASE("connect: what is half made is closed with its communicator, and nothing stays open") {
  const size_t before = open_descriptors();
  const int polls = GENERATE(0, 1, 2, 3, 4, 5, 6, 8);
  {
    Host from, to;
    to.provider.network().never_ready = from.provider.network().never_ready = true;
    test::HandleBytes handle;
    auto* listener = *to.process.listen(to.context(), 0, handle);
    for (int i = 0; i < polls; ++i) {
      REQUIRE(from.process.connect(from.context(), 0, handle));
      REQUIRE(to.process.accept(listener));
    }
    from.process.finalize(from.context());
    CHECK(from.provider.network().endpoints == 0);
    to.process.finalize(to.context());
    CHECK(to.provider.network().endpoints == 0);
    CHECK(open_descriptors() == before);
    CHECK_FALSE(to.process.accept(listener));
  }
}

TEST_CASE("connect: after the last close nothing is open") {
  const size_t before = open_descriptors();
  {
    Host from, to;
    { Joined one(from, to), other(from, to); }
    CHECK(open_descriptors() == before);
    CHECK(from.provider.network().endpoints + to.provider.network().endpoints == 0);
  }
}

TEST_CASE("close: null and what is closed already are taken") {
  Host from, to;
  Meeting meeting(from, to);
  meeting.meet();
  for (int i = 0; i < 2; ++i) {
    from.process.close(meeting.sends);
    to.process.close(meeting.receives);
    to.process.close(meeting.listener);
  }
  to.process.close(static_cast<Comm*>(nullptr));
  to.process.close(static_cast<ListenComm*>(nullptr));
  const auto accepted = to.process.accept(meeting.listener);
  REQUIRE_FALSE(accepted);
  CHECK(accepted.error().code == Code::invalid_argument);
}
