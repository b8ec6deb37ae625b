// The receiving side of connections in the making: strangers, and peers that are lost on the way.
#include <sys/socket.h>

#include "base/log.h"
#include "test/plugin/by_hand.h"

using namespace gyre;
using namespace gyre::plugin;
using gyre::test::check_joined;
using gyre::test::contains;
using gyre::test::HandSender;
using gyre::test::heard;
using gyre::test::Host;
using gyre::test::Joined;
using gyre::test::Meeting;
using gyre::test::say;

namespace {

constexpr auto accept_in_place = WayKind::in_place, accept_network = WayKind::network;

}  // namespace

TEST_CASE("accept: who does not have the cookie is dropped, and does not disturb who has it") {
  Host from, stranger, to;
  Meeting meeting(from, to);
  auto content = *read_handle(meeting.handle);
  content.cookie[3] = static_cast<char>(content.cookie[3] ^ 1);
  test::HandleBytes forged;
  write_handle(forged, content);
  REQUIRE(test::becomes([&] {
    const auto made = stranger.process.connect(stranger.context(), 0, forged);
    REQUIRE((!made || *made == nullptr));
    meeting.accept();
    return meeting.listener->strangers() > 0;
  }));
  CHECK_FALSE(meeting.accept_error);
  meeting.meet();
  check_joined(meeting.sends, meeting.receives);
  from.process.close(meeting.sends);
  to.process.close(meeting.receives);
}

TEST_CASE("accept: strangers are dropped, whatever they say, and never waited for") {
  Host from, to;
  Meeting meeting(from, to);
  const auto content = *read_handle(meeting.handle);
  Hello no_number{content.cookie, 0, {}};
  std::vector<Control> frames;
  const auto talk = [&](plugin::Word word, const std::string& bytes) {
    frames.push_back(Control::to(content.address, std::chrono::seconds(5)));
    say(frames.back(), word, bytes);
  };
  talk(plugin::Word::attempt, encode_attempt(accept_network));
  talk(plugin::Word::hello, "");
  talk(plugin::Word::hello, encode(Hello{content.cookie, 1, {}}).substr(0, 40));
  talk(plugin::Word::farewell, {});
  std::vector<UniqueFd> bare;
  for (const std::string text : {"GET / HTTP/1.1\r\n\r\n", "SSH-2.0-x\r\n", "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"}) {
    bare.emplace_back(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    REQUIRE(::connect(bare.back().get(), reinterpret_cast<const sockaddr*>(&content.address.bytes), content.address.length) == 0);
    REQUIRE(::send(bare.back().get(), text.data(), text.size(), MSG_NOSIGNAL) == ssize_t(text.size()));
  }
  REQUIRE(test::becomes([&] { return meeting.accept(), meeting.listener->strangers() == frames.size() + bare.size(); }));
  meeting.meet();
  check_joined(meeting.sends, meeting.receives);
  CHECK(meeting.listener->strangers() == frames.size() + bare.size());
  from.process.close(meeting.sends);
  to.process.close(meeting.receives);
}

TEST_CASE("accept: of strangers that say nothing only so many are borne with, and a sender after them is served") {
  Host from, to;
  Meeting meeting(from, to);
  const auto content = *read_handle(meeting.handle);
  std::vector<UniqueFd> silent;
  for (int i = 0; i < 200; ++i) {
    silent.emplace_back(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    REQUIRE(::connect(silent.back().get(), reinterpret_cast<const sockaddr*>(&content.address.bytes), content.address.length) == 0);
  }
  REQUIRE(test::becomes([&] { return meeting.accept(), meeting.listener->strangers() >= 136; }));
  meeting.meet();
  check_joined(meeting.sends, meeting.receives);
  from.process.close(meeting.sends);
  to.process.close(meeting.receives);
}

TEST_CASE("accept: a crowd of senders that greet at a time is no crowd of strangers") {
  Host to, from;
  Meeting meeting(from, to);
  std::vector<std::unique_ptr<HandSender>> senders;
  for (int i = 0; i < 100; ++i) {
    senders.push_back(std::make_unique<HandSender>(meeting));
    senders.back()->greet();
  }
  const HandSender silent(meeting);
  for (auto& sender : senders) {
    const auto offer = heard(sender->control, [&] { meeting.accept(); });
    REQUIRE(offer);
    CHECK(decode_offer(offer->bytes));
  }
  CHECK(meeting.listener->strangers() == 0);
}

TEST_CASE("accept: a sender that is lost on its way is an error, once, and the next one is served") {
  Host from, to;
  Meeting meeting(from, to);
  const int state = GENERATE(0, 1, 2);
  {
    HandSender sender(meeting);
    sender.greet();
    if (state > 0) REQUIRE(heard(sender.control, [&] { meeting.accept(); })->kind == static_cast<uint32_t>(plugin::Word::offer));
    if (state > 1) {
      say(sender.control, plugin::Word::attempt, encode_attempt(accept_network));
      REQUIRE(heard(sender.control, [&] { meeting.accept(); })->kind == static_cast<uint32_t>(plugin::Word::address));
    }
  }
  REQUIRE(test::becomes([&] { return meeting.accept(), meeting.accept_error.has_value(); }));
  CHECK(meeting.accept_error->code == Code::remote);
  CHECK(contains(meeting.accept_error, "by hand"));
  meeting.accept_error.reset();
  meeting.meet();
  check_joined(meeting.sends, meeting.receives);
  from.process.close(meeting.sends);
  to.process.close(meeting.receives);
}

TEST_CASE("accept: a way that is none is passed over, and one that is not there is refused") {
  Host from, to;
  Meeting meeting(from, to);
  to.provider.cannot_open[0] = Error{Code::system, "no such way"};
  HandSender sender(meeting);
  sender.greet();
  const auto poll = [&] { meeting.accept(); };
  CHECK(decode_offer(heard(sender.control, poll)->bytes)->ways == 1U << static_cast<uint32_t>(accept_network));
  say(sender.control, plugin::Word::attempt, "");
  say(sender.control, plugin::Word::attempt, "\x7f");
  say(sender.control, plugin::Word::attempt, encode_attempt(accept_in_place));
  const auto refusal = heard(sender.control, poll);
  REQUIRE(refusal);
  CHECK(refusal->kind == static_cast<uint32_t>(plugin::Word::refusal));
  CHECK(refusal->bytes.substr(1) == "no such way");
  CHECK_FALSE(meeting.accept_error);
}

TEST_CASE("accept: an endpoint that is nobody's is put away") {
  Host from, to;
  Meeting meeting(from, to);
  HandSender sender(meeting);
  sender.greet();
  const auto poll = [&] { meeting.accept(); };
  REQUIRE(heard(sender.control, poll));
  say(sender.control, plugin::Word::attempt, encode_attempt(accept_network));
  const auto address = heard(sender.control, poll);
  REQUIRE(address);
  const auto worker = *transport::open_posted_loopback_worker({});
  const auto endpoint = *worker->connect(address->bytes, GENERATE("", "notright", "a long greeting that is no number"));
  REQUIRE(test::becomes([&] { return meeting.accept(), *endpoint->ready(); }));
  for (int i = 0; i < 100; ++i) meeting.accept();
  CHECK_FALSE(meeting.receives);
  CHECK_FALSE(meeting.accept_error);
}

TEST_CASE("accept: who greeted a listener that can't take it hears why, and the next one is accepted") {
  Host from, to;
  to.provider.network().accept = Error{Code::system, "the test lets a listener fail (this line belongs to it)"};
  {
    Meeting meeting(from, to);
    gyre::log::set_level(gyre::log::Level::error);
    meeting.meet();
    gyre::log::set_level(gyre::log::Level::warn);
    CHECK(contains(meeting.connect_error, "the test lets a listener fail"));
    CHECK(contains(meeting.accept_error, "connection from"));  // as all that is said of lost ones
    CHECK(contains(meeting.accept_error, "lost while it was made"));
  }
  to.provider.network().accept.reset();
  const Joined joined(from, to);
  check_joined(joined.sends, joined.receives);
}

TEST_CASE("accept: who greeted a way that can't be taken goes the next one") {
  using enum plugin::WayKind;
  Host from({in_place, network}), to({in_place, network});
  to.provider.of(in_place).accept = Error{Code::system, "the test lets a listener fail (this line belongs to it)"};
  gyre::log::set_level(gyre::log::Level::error);
  const Joined joined(from, to);
  gyre::log::set_level(gyre::log::Level::warn);
  CHECK(joined.sends->way() == network);
  check_joined(joined.sends, joined.receives);
}
