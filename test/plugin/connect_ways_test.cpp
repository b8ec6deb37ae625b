// Which way two ends of a connection take, and what happens when one is refused.
#include "test/plugin/joined.h"

using namespace gyre;
using namespace gyre::plugin;
using gyre::test::check_joined;
using gyre::test::contains;
using gyre::test::Host;
using gyre::test::Joined;
using gyre::test::Meeting;

namespace {

constexpr auto in_place = WayKind::in_place, by_copies = WayKind::by_copies, network = WayKind::network;
using Ways = std::vector<WayKind>;

}  // namespace

TEST_CASE("connect: the best way of the sender's that both have is taken") {
  struct Case {
    Ways from, to;
    WayKind expected;
  };
  const auto c = GENERATE(values<Case>({
      {{in_place, by_copies, network}, {in_place, by_copies, network}, in_place},
      {{in_place, by_copies, network}, {network, by_copies, in_place}, in_place},
      {{by_copies, in_place, network}, {in_place, by_copies, network}, by_copies},
      {{in_place, by_copies, network}, {by_copies, network}, by_copies},
      {{in_place, network}, {by_copies, network}, network},
      {{network, in_place}, {in_place, network}, network},
      {{network}, {in_place, by_copies, network}, network},
      {{by_copies}, {by_copies}, by_copies},
  }));
  Host from(c.from), to(c.to);
  Joined joined(from, to);
  CHECK(joined.sends->way() == c.expected);
  CHECK(joined.receives->way() == c.expected);
  CHECK(joined.sends->direction() == Comm::Direction::sends);
  CHECK(joined.receives->direction() == Comm::Direction::receives);
  check_joined(joined.sends, joined.receives);
}

TEST_CASE("connect: two ends without a common way have an error that says so, both of them") {
  Host from(Ways{in_place}), to(Ways{network});
  Meeting meeting(from, to);
  meeting.meet();
  CHECK(contains(meeting.connect_error, "no way"));
  CHECK(meeting.connect_error->code == Code::remote);
  CHECK(contains(meeting.accept_error, "lost while it was made"));
}

TEST_CASE("connect: a way that either end can't go is left for the next one") {
  using Break = void (*)(Host & from, Host & to, Error);
  const auto spoil = GENERATE(values<Break>({
      [](Host& from, Host&, Error e) { from.provider.cannot_open[0] = std::move(e); },
      [](Host& from, Host&, Error e) { from.provider.of(in_place).connect = std::move(e); },
      [](Host& from, Host&, Error e) { from.provider.of(in_place).ready = std::move(e); },
      [](Host&, Host& to, Error e) { to.provider.cannot_open[0] = std::move(e); },
      [](Host&, Host& to, Error e) { to.provider.of(in_place).listen = std::move(e); },
      [](Host&, Host& to, Error e) { to.provider.of(in_place).ready = std::move(e); },
  }));
  Host from(Ways{in_place, network}), to(Ways{in_place, network});
  spoil(from, to, Error{Code::system, "the test says no"});
  Joined joined(from, to);
  CHECK(joined.sends->way() == network);
  CHECK(joined.receives->way() == network);
  check_joined(joined.sends, joined.receives);
}

TEST_CASE("connect: where every way is refused the error says which, and why each") {
  Host from(Ways{in_place, by_copies, network}), to(Ways{in_place, by_copies, network});
  from.provider.of(in_place).connect = Error{Code::system, "no kernel"};
  to.provider.of(by_copies).listen = Error{Code::system, "no segment"};
  to.provider.of(network).ready = Error{Code::remote, "no route"};
  Meeting meeting(from, to);
  meeting.meet();
  CHECK(contains(meeting.connect_error, "in place: no kernel"));
  CHECK(contains(meeting.connect_error, "copies: no segment"));
  CHECK(contains(meeting.connect_error, "the network: no route"));
  CHECK(meeting.sends == nullptr);
  CHECK(meeting.accept_error);
}

TEST_CASE("connect: a way that is refused when the sender has done already ends the connection for both") {
  Host from, to;
  to.provider.network().never_ready = true;
  Meeting meeting(from, to);
  meeting.settle_connect();
  REQUIRE(meeting.sends);
  REQUIRE(meeting.receives == nullptr);
  to.provider.network().ready = Error{Code::remote, "no reply went out"};
  auto* request = test::send(meeting.sends, "to nobody");
  const auto done = test::finish(request, nullptr, [&] { meeting.accept(); });
  REQUIRE_FALSE(done);
  CHECK(done.error().code == Code::remote);
  from.process.close(meeting.sends);
  CHECK(test::becomes([&] { return meeting.accept(), meeting.accept_error.has_value(); }));
}

TEST_CASE("connect: the receiver is not done before the sender is, so that another way can be tried") {
  Host from(Ways{in_place, network}), to(Ways{in_place, network});
  from.provider.of(in_place).never_ready = true;
  Meeting meeting(from, to);
  REQUIRE(test::becomes([&] { return meeting.connect(), meeting.accept(), to.provider.of(in_place).endpoints == 1; }));
  for (int i = 0; i < 100; ++i) meeting.connect(), meeting.accept();
  REQUIRE_FALSE(meeting.receives);
  from.provider.of(in_place).ready = Error{Code::remote, "no reply came"};
  meeting.meet();
  CHECK_FALSE(meeting.connect_error);
  REQUIRE(meeting.receives);
  CHECK(meeting.receives->way() == network);
  check_joined(meeting.sends, meeting.receives);
  from.process.close(meeting.sends);
  to.process.close(meeting.receives);
}
