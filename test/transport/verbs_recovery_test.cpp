// Failures at the worst moment: between two steps of what wire.h describes.
#include <algorithm>
#include <array>
#include <cstring>

#include "test/catch.h"
#include "test/faulty_transport.h"
#include "test/transport/fake_verbs.h"
#include "test/transport/verbs_two.h"
#include "transport/loopback_posted.h"

namespace gyre::test {
namespace {

using transport::Request;
using transport::verbs::Link;
using transport::verbs::poll;
using transport::verbs::Rail;
using transport::verbs::Registered;

const Error lost{Code::system, "the test has broken it"};

/// Only this end looks at its devices, for a while; packets move all the same.
void look_for_a_while(Two::End& end, int times = 2000) {
  for (int i = 0; i < times; ++i) {
    (void)poll(end.rails);
    (void)end.link->catch_up();
  }
}

void number(std::vector<std::byte>& memory) {
  for (size_t i = 0; i < memory.size(); ++i) memory[i] = static_cast<std::byte>(i * 31 / 7);
}

std::string words(const std::optional<Error>& error) { return error ? error->what : ""; }

bool all_done(std::span<Request* const> requests) {
  return std::all_of(requests.begin(), requests.end(), [](Request* request) { return request->done; });
}

}  // namespace

TEST_CASE("what is sent over a path that the peer has lost already, for a receive posted after it said so, arrives") {
  Two two(2);
  number(two.a().memory);
  two.b().link->lose(*two.b().rails[0], std::nullopt, lost);
  look_for_a_while(two.b());
  REQUIRE(two.b().link->alive() == 1);
  Request* receive = two.b().receive(1, 0, 100);
  look_for_a_while(two.b());
  // This end has the credit, and has not looked at the mail.
  REQUIRE(two.a().link->alive() == 2);
  Request* send = two.a().send(1, 0, 100);
  REQUIRE(send != nullptr);
  CHECK(two.until([&] { return send->done && receive->done; }));
  CHECK(std::equal(two.b().memory.begin(), two.b().memory.begin() + 100, two.a().memory.begin()));
}

TEST_CASE("a path comes back on a device whose completion queue is full") {
  FakeTraits traits;
  traits.max_cqe = 1536;  // those of one queue pair
  Two two({2, 2}, 1, false, {}, {}, traits);
  two.a().link->lose(*two.a().rails[0], std::nullopt, lost);
  REQUIRE(two.until([&] { return two.b().link->alive() == 1; }));
  for (auto& end : two.ends) end.link->retry_at_once();
  CHECK(two.until([&] { return two.tick(), two.a().link->alive() == 2 && two.b().link->alive() == 2; }));
}

TEST_CASE("what a device had told of before it was given up is not counted any more") {
  Two two(2);
  number(two.a().memory);
  std::array<Request*, 40> receives{}, sends{};
  for (size_t i = 0; i < receives.size(); ++i) receives[i] = two.b().receive(i, i * 100, 100);
  for (size_t i = 0; i < sends.size(); ++i) REQUIRE(two.until([&] { return (sends[i] = two.a().send(i, i * 100, 100)) != nullptr; }));
  // They are there, but the receiver does not look before it hears that its device is dead.
  const bool acknowledged = GENERATE(false, true);
  if (!acknowledged) two.fake.lose_acknowledgements("a0");
  for (int i = 0; i < 1000; ++i) (void)poll(std::span(two.a().rails).first(1));
  two.fake.kill("b0");
  two.b().link->lose_device(*two.b().rails[0], lost);
  const bool ended = two.until([&] { return two.a().link->failure() || (all_done(receives) && all_done(sends)); });
  CHECK(ended);
  if (acknowledged) {
    REQUIRE(two.a().link->failure().has_value());
    CHECK(two.a().link->failure()->what.find("GYRE_IB_CONFIRM=1") != std::string::npos);
  } else {
    CHECK(!two.a().link->failure());
    CHECK(std::equal(two.b().memory.begin(), two.b().memory.begin() + 4000, two.a().memory.begin()));
  }
  CHECK(!two.b().link->failure());
}

TEST_CASE("a message of a group that was told of after its path had failed is told of again when that path fails too") {
  Two two(3);
  number(two.a().memory);
  std::array<Request*, 3> receives{}, sends{};
  for (uint8_t i = 0; i < 3; ++i) receives[i] = two.b().receive(i, i * 100U, 100, {3, i});
  sends[0] = two.sent(0, 0, 100);
  REQUIRE(sends[0] != nullptr);
  REQUIRE(two.until([&] { return sends[0]->done; }));
  two.a().link->lose(*two.a().rails[0], std::nullopt, lost);
  REQUIRE(two.until([&] { return two.b().link->alive() < two.b().link->paths(); }));
  look_for_a_while(two.b());
  // The word goes over the next path, and is lost with it, or is on its way still when the third fails.
  const int fails = GENERATE(1, 2);
  fails == 1 ? two.fake.cut_path("b1") : two.fake.hold(true);
  look_for_a_while(two.a(), 20);
  CHECK(!receives[0]->done);
  two.a().link->lose(*two.a().rails[static_cast<size_t>(fails)], std::nullopt, lost);
  two.b().link->lose(*two.b().rails[static_cast<size_t>(fails)], std::nullopt, lost);
  look_for_a_while(two.b(), 20);  // it says that it has not come
  two.fake.hold(false);
  for (uint8_t i = 1; i < 3; ++i) {
    sends[i] = two.sent(i, i * 100U, 100);
    REQUIRE(sends[i] != nullptr);
  }
  CHECK(two.until([&] { return all_done(receives) && all_done(sends); }));
  CHECK(words(two.a().link->failure()) == "");
  CHECK(words(two.b().link->failure()) == "");
  CHECK(std::equal(two.b().memory.begin(), two.b().memory.begin() + 300, two.a().memory.begin()));
}

TEST_CASE("a path that is coming back carries on when the last other one fails before its ends have heard of each other") {
  Two two(2);
  for (auto& end : two.ends) end.link->lose(*end.rails[0], std::nullopt, lost);
  Request* receive = nullptr;
  REQUIRE(two.until([&] { return receive || (receive = two.b().receive(1, 0, 8)) != nullptr; }));
  REQUIRE(two.sent(1, 0, 8) != nullptr);
  REQUIRE(two.until([&] { return receive->done; }));
  for (int i = 0; i < 1000; ++i) two.progress();
  for (auto& end : two.ends) end.link->retry_at_once();
  two.tick();
  // The offers have come to both, and nobody has looked.
  for (int i = 0; i < 20; ++i) (void)poll(std::span(two.a().rails).first(1));
  two.fake.hold(true);
  for (auto& end : two.ends) (void)poll(std::span(end.rails).subspan(1, 1));
  for (auto& end : two.ends) (void)end.link->catch_up();
  for (auto& end : two.ends) {
    REQUIRE(end.link->trying());
    end.link->lose(*end.rails[1], std::nullopt, lost);
  }
  two.fake.hold(false);
  CHECK(two.until([&] { return two.a().link->alive() > 0 && two.b().link->alive() > 0; }));
  CHECK(words(two.a().link->failure()) == "");
}

TEST_CASE("a path that is tried when no other is left, and of which nothing is heard, ends the connection") {
  Two two(2);
  for (auto& end : two.ends) end.link->lose(*end.rails[0], std::nullopt, lost);
  for (int i = 0; i < 1000; ++i) two.progress();
  for (auto& end : two.ends) end.link->retry_at_once();
  two.tick();
  // As above, and what is held back then is swallowed.
  for (int i = 0; i < 20; ++i) (void)poll(std::span(two.a().rails).first(1));
  two.fake.hold(true);
  for (auto& end : two.ends) (void)poll(std::span(end.rails).subspan(1, 1));
  for (auto& end : two.ends) (void)end.link->catch_up();
  Link& link = *two.a().link;
  REQUIRE(link.trying());
  link.lose(*two.a().rails[1], std::nullopt, lost);
  two.fake.swallow();
  for (int i = 0; i < 1000; ++i) two.progress();  // what was under way there has come back
  auto now = Link::Clock::now();
  link.tick(now, false);
  link.tick(now += std::chrono::minutes(2), false);  // a device may take 137 s by the default timeout and retries
  CHECK(words(link.failure()) == "");
  link.tick(now += std::chrono::minutes(1), false);
  CHECK(words(link.failure()).find("no device has said whether they carry") != std::string::npos);
}

TEST_CASE("a long message waits for room for both of its writes where packets pass each other") {
  transport::verbs::PathOptions adaptive;
  adaptive.adaptive_routing = true;
  adaptive.adaptive_threshold = 1000;
  FakeTraits traits;
  traits.max_qp_wr = 64;
  Two two({1, 1}, 1, false, adaptive, {}, traits);
  for (uint64_t i = 0; i < 40; ++i) {
    REQUIRE(two.b().receive(i, 0, 2000) != nullptr);
    two.progress();
  }
  look_for_a_while(two.b(), 100);
  REQUIRE(two.a().receive(1, 0, 8) != nullptr);
  two.fake.hold(true);
  size_t sent = 0;
  while (sent < 40 && two.a().send(sent, 0, 2000)) ++sent;
  CHECK(sent > 20);
  CHECK(sent < 40);
  CHECK(words(two.a().link->failure()) == "");
}

TEST_CASE("a receive that finds no room asks to be looked at") {
  FakeTraits traits;
  traits.max_qp_wr = 64;
  Two two({1, 1}, 1, false, {}, {}, traits);
  int asked = 0;
  two.a().link->on_failure([&] { ++asked; });
  two.fake.hold(true);
  for (uint64_t i = 0; i < 64; ++i) REQUIRE(two.a().receive(i, 0, 8) != nullptr);
  CHECK(asked > 0);
  two.a().link->on_failure({});
}

TEST_CASE("more ports than a credit has keys for are refused, whatever the peer says") {
  Two two(1);
  for (const uint32_t rails : {0U, 9U, 16U, UINT32_MAX}) CHECK(!Link::open(two.a().rails, {rails, 1, false}, "b"));
  for (const uint32_t pairs : {0U, 17U, 200U, UINT32_MAX}) CHECK(!Link::open(two.a().rails, {1, pairs, false}, "b"));
  transport::verbs::Credit nonsense;
  nonsense.tag = ~uint64_t{0};
  CHECK(nonsense.group().place < transport::verbs::max_group);
}

namespace {

/// As one that writes what comes into what it was given, until it is gone.
class LateEndpoint final : public transport::Endpoint {
 public:
  explicit LateEndpoint(bool& broken_off) : broken_off_(broken_off) {}
  ~LateEndpoint() override {
    for (const auto& place : places_) std::fill(place.begin(), place.end(), std::byte{1});
  }
  Result<bool> ready() override { return true; }
  std::string_view hello() const override { return ""; }
  transport::Fifo& fifo() override { std::abort(); }
  Request* receive(uint64_t, std::span<std::byte> place, const transport::Memory*) override {
    places_.push_back(place);
    return &request_;
  }
  void break_off(const char*) override { broken_off_ = true; }

 private:
  bool& broken_off_;
  Request request_;
  std::vector<std::span<std::byte>> places_;
};

}  // namespace

TEST_CASE("notes outlive the connection that they are received from, and that ends with the paths'") {
  Two two(1);
  bool broken_off = false;
  two.a().link->use_detour(std::make_unique<LateEndpoint>(broken_off), false);
  two.a().link->progress_detour();
  two.a().link->break_off("the test is over");
  CHECK(broken_off);
  two.a().link.reset();
}

namespace {

/// Two that have another way too, which breaks or stalls as a test wants.
struct Detoured {
  explicit Detoured(int rails = 1) : two(rails) {
    auto listener = *workers[1]->listen();
    auto from = *workers[0]->connect(listener->address(), ""), to = *listener->accept();
    ways = {from.get(), to.get()};
    two.a().link->use_detour(std::move(from), false);
    two.b().link->use_detour(std::move(to), false);
  }
  void progress_tcp() {
    for (auto& worker : workers) (void)worker->progress();
    for (auto& end : two.ends) {
      end.link->progress_detour();
      (void)end.link->catch_up();
    }
  }
  void progress() {
    progress_tcp();
    two.progress();
  }
  template <class Done>
  bool until(Done done) {
    for (int i = 0; i < 20000; ++i) {
      if (done()) return true;
      progress();
    }
    return false;
  }
  void lose_paths() {
    for (auto& end : two.ends)
      for (Rail* rail : end.rails) end.link->lose(*rail, std::nullopt, lost);
    REQUIRE(until([&] { return two.a().link->alive() == 0 && two.b().link->alive() == 0; }));
    for (int i = 0; i < 1000; ++i) progress();
  }
  /// Both ends have joined again, and wait to hear that it carries.
  void bring_back_but_for_probes() {
    two.fake.hold(true);
    for (auto& end : two.ends) end.link->retry_at_once();
    two.tick();
    for (int i = 0; i < 1000 && !(two.a().link->trying() && two.b().link->trying()); ++i) progress_tcp();
    for (auto& end : two.ends) REQUIRE(end.link->trying());
    for (int i = 0; i < 10; ++i) progress_tcp();
  }

  Faults faults;
  std::array<std::unique_ptr<transport::Worker>, 2> workers{
      std::make_unique<FaultyWorker>(*transport::open_posted_loopback_worker({}), faults),
      std::make_unique<FaultyWorker>(*transport::open_posted_loopback_worker({}), faults)};
  std::array<transport::Endpoint*, 2> ways{};
  Two two;
};

}  // namespace

TEST_CASE("what was under way over TCP when that failed goes over the path that is back") {
  Detoured by;
  auto &a = by.two.a(), &b = by.two.b();
  number(a.memory);
  const size_t breaks = GENERATE(0U, 1U);
  by.lose_paths();
  std::array<Request*, 3> receives{b.receive(0, 0, 1000), b.receive(1, 1000, 1000)}, sends{};
  REQUIRE(by.until([&] { return (sends[0] = a.send(0, 0, 1000)) != nullptr; }));
  REQUIRE(by.until([&] { return sends[0]->done && receives[0]->done; }));
  by.bring_back_but_for_probes();
  by.faults.nulls = UINT32_MAX;
  REQUIRE((sends[1] = a.send(1, 1000, 1000)) != nullptr);
  REQUIRE((receives[2] = b.receive(2, 2000, 1000)) != nullptr);
  by.two.fake.hold(false);
  REQUIRE(by.until([&] { return a.link->alive() == 1 && b.link->alive() == 1; }));
  for (int i = 0; i < 1000; ++i) by.progress();
  CHECK(!receives[1]->done);
  by.faults.nulls = 0;
  by.ways[breaks]->break_off("the test has broken it");
  CHECK(by.until([&] { return sends[2] || (sends[2] = a.send(2, 2000, 1000)) != nullptr; }));
  CHECK(by.until([&] { return sends[2] && all_done(sends) && all_done(receives); }));
  CHECK(words(a.link->failure()) == "");
  CHECK(words(b.link->failure()) == "");
  CHECK(std::equal(b.memory.begin(), b.memory.begin() + 3000, a.memory.begin()));
}

TEST_CASE("TCP may fail before both have heard that a path is back") {
  Detoured by;
  by.lose_paths();
  by.bring_back_but_for_probes();
  const bool one_has_heard = GENERATE(false, true);
  if (one_has_heard) {
    by.two.fake.hold(false);
    for (int i = 0; i < 1000 && by.two.a().link->alive() == 0; ++i) (void)poll(std::span(by.two.a().rails).first(1));
    REQUIRE(by.two.a().link->alive() == 1);
    REQUIRE(by.two.b().link->alive() == 0);
  }
  by.ways[0]->break_off("the test has broken it");
  by.progress_tcp();
  by.two.fake.hold(false);
  CHECK(by.until([&] { return by.two.a().link->alive() == 1 && by.two.b().link->alive() == 1; }));
  CHECK(words(by.two.a().link->failure()) == "");
  CHECK(words(by.two.b().link->failure()) == "");
}

TEST_CASE("an empty message into a receive of no bytes goes over TCP") {
  Detoured by;
  by.lose_paths();
  Request* receive = by.two.b().link->receive(1, {}, nullptr);
  Request* send = nullptr;
  REQUIRE(by.until([&] { return (send = by.two.a().link->send(1, {}, nullptr)) != nullptr; }));
  CHECK(by.until([&] { return send->done && receive->done; }));
  CHECK(words(by.two.b().link->failure()) == "");
  CHECK(receive->failure == nullptr);
  CHECK(receive->bytes == 0);
}

TEST_CASE("TCP is given up when nothing has gone through for two minutes in which somebody looked") {
  using std::chrono::seconds;
  Detoured by;
  by.lose_paths();
  Link& link = *by.two.a().link;
  auto now = Link::Clock::now();
  by.faults.nulls = UINT32_MAX;
  REQUIRE(by.two.a().receive(1, 0, 8) != nullptr);
  link.tick(now, false);
  link.tick(now += seconds(1000), false);  // nobody called
  CHECK(words(link.failure()) == "");
  for (int i = 0; i < 115; ++i) link.tick(now += seconds(1), false);
  CHECK(words(link.failure()) == "");
  for (int i = 0; i < 10; ++i) link.tick(now += seconds(1), false);
  CHECK(words(link.failure()).find("nothing has gone through for 2 minutes") != std::string::npos);
}

TEST_CASE("a message longer than 16 of its port's longest writes is an error at once, and a shorter one waits for room") {
  FakeTraits traits;
  traits.max_message = 8192;
  traits.max_qp_wr = 128;
  const int rails = GENERATE(1, 2);
  Two two({rails, rails}, 1, false, {}, {}, traits);
  number(two.a().memory);
  const size_t longest = 16UL * 8192;
  Request* first = two.b().receive(1, 0, longest);
  Request* second = two.b().receive(2, longest, 2 * longest);
  Request* longer = nullptr;
  REQUIRE(two.until([&] { return (longer = two.a().send(2, 0, longest + 1)) != nullptr; }));
  CHECK(longer->done);
  CHECK(longer->failure == std::string("the message is longer than 16 of the longest writes of its ports"));
  two.fake.hold(true);
  while (two.a().receive(3, 0, 8)) continue;
  for (int i = 0; i < 100; ++i) CHECK(two.a().send(1, 0, longest) == nullptr);
  two.fake.hold(false);
  Request* send = two.sent(1, 0, longest);
  REQUIRE(send != nullptr);
  CHECK(send->failure == nullptr);
  CHECK(two.until([&] { return send->done && first->done; }));
  CHECK(std::equal(two.b().memory.begin(), two.b().memory.begin() + longest, two.a().memory.begin()));
  Request* third = two.sent(2, 0, longest);
  REQUIRE(third != nullptr);
  CHECK(two.until([&] { return third->done && second->done; }));
}

TEST_CASE("a message of a group that a device had taken before it died counts as lost") {
  const bool confirms = GENERATE(false, true);
  Two two({2, 2}, 1, confirms);
  number(two.a().memory);
  std::array<Request*, 2> receives{}, sends{};
  for (uint8_t i = 0; i < 2; ++i) receives[i] = two.b().receive(i, i * 100U, 100, {2, i});
  sends[0] = two.sent(0, 0, 100);
  REQUIRE(sends[0] != nullptr);
  for (int i = 0; i < 1000; ++i) two.progress();
  CHECK(sends[0]->done == !confirms);
  two.fake.kill("b0");
  std::fill(two.b().memory.begin(), two.b().memory.end(), std::byte{0});  // it had not passed it on
  two.b().link->lose_device(*two.b().rails[0], lost);
  const auto ended = [&] { return two.a().link->failure() || all_done(receives); };
  CHECK(two.until([&] { return (!sends[1] && !(sends[1] = two.a().send(1, 100, 100))) ? false : ended(); }));
  if (confirms) {
    CHECK(words(two.a().link->failure()) == "");
    CHECK(std::equal(two.b().memory.begin(), two.b().memory.begin() + 200, two.a().memory.begin()));
  } else {
    CHECK(words(two.a().link->failure()).find("GYRE_IB_CONFIRM=1") != std::string::npos);
    CHECK(!receives[0]->done);
  }
}

TEST_CASE("what goes over TCP is sent when the peer has begun to receive it") {
  Detoured by;
  auto &a = by.two.a(), &b = by.two.b();
  by.lose_paths();
  std::array<Request*, 12> receives{}, sends{};
  const size_t bytes = GENERATE(0U, 100U);
  for (uint64_t i = 0; i < 12; ++i) receives[i] = b.receive(i, i * 100, bytes);
  for (int i = 0; i < 1000; ++i) by.progress();
  by.faults.eager = true;
  for (uint64_t i = 0; i < 12; ++i) REQUIRE((sends[i] = a.send(i, i * 100, bytes)) != nullptr);
  for (int i = 0; i < 1000; ++i) {
    (void)by.workers[0]->progress();
    a.link->progress_detour();
  }
  CHECK(!sends[11]->done);
  CHECK(by.until([&] { return all_done(sends) && all_done(receives); }));
}

TEST_CASE("TCP that breaks after the goodbye, and before all has come, ends the connection") {
  Detoured by;
  auto &a = by.two.a(), &b = by.two.b();
  by.lose_paths();
  Request* receive = b.receive(1, 0, 1000);
  for (int i = 0; i < 1000; ++i) by.progress();
  REQUIRE(a.send(1, 0, 1000) != nullptr);
  REQUIRE(a.link->say_goodbye());
  by.faults.never_complete = true;
  for (int i = 0; i < 1000; ++i) by.progress();
  CHECK(!b.link->peer_said_goodbye());
  CHECK(!receive->done);
  by.ways[0]->break_off("the test has broken it");
  for (int i = 0; i < 1000; ++i) by.progress();
  CHECK(words(b.link->failure()).find("no path is left, and over TCP instead") != std::string::npos);
  CHECK(receive->done);
}

TEST_CASE("a confirmation that can't be posted while a group is received ends the connection") {
  Two two({1, 1}, 1, true);
  std::array<Request*, 2> receives{};
  for (uint8_t i = 0; i < 2; ++i) receives[i] = two.b().receive(i, i * 100U, 100, {2, i});
  for (uint8_t i = 0; i < 2; ++i) REQUIRE(two.sent(i, i * 100U, 100) != nullptr);
  two.fake.fail("post_send", EIO, 1);
  CHECK(two.until([&] { return receives[0]->done && receives[1]->done; }));
}

}  // namespace gyre::test
