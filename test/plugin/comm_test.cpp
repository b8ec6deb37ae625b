// Messages of a connection as NCCL moves them: many under way, tags, groups, sizes, no room.
#include "plugin/comm.h"

#include <random>

#include "test/plugin/joined.h"

using namespace gyre;
using namespace gyre::plugin;
using gyre::test::Host;
using gyre::test::Joined;
using gyre::test::Receive;

namespace {

void finish_all(const std::vector<Request*>& requests) {
  for (auto* request : requests) REQUIRE(test::finish(request));
}

}  // namespace

TEST_CASE("comm: as many sends and receives are under way as there are requests; beyond that it is null until one is done") {
  Joined joined;
  std::deque<std::string> texts;
  std::vector<Request*> sends;
  for (size_t i = 0; i < max_requests; ++i) {
    sends.push_back(test::send(joined.sends, texts.emplace_back("message " + std::to_string(i))));
    REQUIRE(sends.back());
  }
  for (int i = 0; i < 100; ++i) REQUIRE(test::send(joined.sends, "too many") == nullptr);
  CHECK(joined.sends->counters().retries.get() == 100);
  std::deque<Receive> receives;
  for (size_t i = 0; i < max_requests; ++i) REQUIRE(receives.emplace_back(joined.receives).request);
  CHECK(Receive(joined.receives).request == nullptr);
  for (size_t i = 0; i < max_requests; ++i) {
    REQUIRE(test::finish(receives[i]));
    REQUIRE(receives[i].text() == texts[i]);
  }
  CHECK(test::finish(sends.front()));
  sends.front() = test::send(joined.sends, "the next");
  REQUIRE(sends.front());
  Receive next(joined.receives);
  REQUIRE(next.request);
  CHECK(test::finish(next));
  CHECK(next.text() == "the next");
  finish_all(sends);
  CHECK(joined.sends->counters().messages.get() == max_requests + 1);
  CHECK(joined.sends->counters().bytes.get() == joined.receives->counters().bytes.get());
}

TEST_CASE("comm: grouped receives have room for all their parts in all requests") {
  Joined joined;
  std::vector<int> tags(max_grouped);
  for (int i = 0; i < max_grouped; ++i) tags[static_cast<size_t>(i)] = i;
  std::deque<Receive> receives;
  for (size_t i = 0; i < max_requests; ++i) REQUIRE(receives.emplace_back(joined.receives, tags, 8).request);
  CHECK_FALSE(receives.back().error);
  CHECK(Receive(joined.receives, tags, 8).request == nullptr);
  CHECK_FALSE(Receive(joined.receives, tags, 8).error);
}

TEST_CASE("comm: messages of one tag arrive in order, however late they are done") {
  const uint32_t seed = GENERATE(0U, 1U, 2U, 3U);
  INFO("seed " << seed);
  Host from, to;
  from.provider.seed = to.provider.seed = seed;
  Joined joined(from, to);
  constexpr int tags = 3, each = 60;
  std::mt19937 random(seed);
  std::deque<std::string> texts;
  std::vector<Request*> sends;
  for (int i = 0; i < each; ++i)
    for (int tag = 0; tag < tags; ++tag)
      sends.push_back(test::send(joined.sends, texts.emplace_back(std::to_string(tag) + ":" + std::to_string(i)), tag));
  std::array<int, tags> posted{};
  std::vector<std::pair<std::string, std::unique_ptr<Receive>>> receives;
  while (receives.size() < sends.size()) {
    const auto tag = random() % tags;
    if (posted[tag] == each) continue;
    const std::string expected = std::to_string(tag) + ":" + std::to_string(posted[tag]++);
    receives.emplace_back(expected, std::make_unique<Receive>(joined.receives, std::vector<int>{static_cast<int>(tag)}));
  }
  for (auto& [expected, receive] : receives) {
    REQUIRE(test::finish(*receive));
    REQUIRE(receive->text() == expected);
  }
  finish_all(sends);
}

TEST_CASE("comm: a grouped receive is done when all its parts are, with the size of each; nothing is a message, too") {
  Joined joined;
  Receive group(joined.receives, {4, -1, 7, 0});
  std::vector<Request*> sends;
  for (const auto& [tag, text] : std::vector<std::pair<int, std::string_view>>{{0, ""}, {7, "seven"}, {4, "four four"}}) {
    for (int i = 0; i < 10; ++i) REQUIRE_FALSE(*group.test());
    sends.push_back(test::send(joined.sends, text, tag));
  }
  for (int i = 0; i < 1000; ++i) REQUIRE_FALSE(*group.test());
  sends.push_back(test::send(joined.sends, "minus one", -1));
  REQUIRE(test::finish(group));
  CHECK(group.sizes == std::vector<int>{9, 9, 5, 0});
  CHECK(group.text(0) == "four four");
  CHECK(group.text(1) == "minus one");
  CHECK(group.text(2) == "seven");
  int size = -1;
  CHECK(test::finish(sends[1], &size, [] {}));
  CHECK(size == 5);
  for (const size_t i : {size_t{0}, size_t{2}, size_t{3}}) CHECK(test::finish(sends[i]));
}

TEST_CASE("comm: sizes need not be asked for") {
  Joined joined;
  Receive receive(joined.receives);
  auto* request = test::send(joined.sends, "unmeasured");
  CHECK(test::finish(receive.request));
  CHECK(test::finish(request));
  CHECK(receive.sizes[0] == -1);
}

TEST_CASE("comm: where the transport has no room the answer is null, and nothing is lost of it") {
  Joined joined;
  joined.from.provider.network().nulls = 1000;
  for (int i = 0; i < 1000; ++i) REQUIRE(test::send(joined.sends, "not yet") == nullptr);
  std::vector<Request*> sends;
  for (size_t i = 0; i < max_requests; ++i) sends.push_back(test::send(joined.sends, "now"));
  REQUIRE(sends.back());
  for (size_t i = 0; i < max_requests; ++i) {
    Receive receive(joined.receives);
    REQUIRE(test::finish(receive));
    REQUIRE(receive.text() == "now");
  }
  finish_all(sends);
}

TEST_CASE("comm: a request that is done late is not done before") {
  Joined joined;
  joined.to.provider.network().late = 500;
  Receive receive(joined.receives);
  auto* request = test::send(joined.sends, "in a while");
  for (int i = 0; i < 500; ++i) REQUIRE_FALSE(*receive.test());
  CHECK(test::finish(receive));
  CHECK(receive.text() == "in a while");
  CHECK(test::finish(request));
}

TEST_CASE("comm: who calls for the other direction is told, and the connection stays") {
  Joined joined;
  const auto sent = joined.receives->send("x", 1, 0, nullptr);
  REQUIRE_FALSE(sent);
  CHECK(sent.error().code == Code::invalid_argument);
  const Receive received(joined.sends);
  REQUIRE(received.error);
  CHECK(received.error->code == Code::invalid_argument);
  test::check_joined(joined.sends, joined.receives);
}

TEST_CASE("comm: a request that is gone is no request, and the connection stays") {
  Joined joined;
  Receive receive(joined.receives);
  auto* request = test::send(joined.sends, "x");
  CHECK(test::finish(receive));
  CHECK(test::finish(request));
  for (auto* gone : {request, receive.request}) {
    const auto again = gone->comm->test(*gone, nullptr);
    REQUIRE_FALSE(again);
    CHECK(again.error().code == Code::invalid_argument);
  }
  test::check_joined(joined.sends, joined.receives);
}

TEST_CASE("comm: while another thread has the turn, calls that may not wait come back without a result") {
  Joined joined;
  auto* request = test::send(joined.sends, "sent before");
  Receive receive(joined.receives);
  std::optional<Result<Request*>> sent;
  std::optional<Result<bool>> tested;
  std::unique_ptr<Receive> received;
  {
    const std::lock_guard turn(joined.sends->group().turn), other_turn(joined.receives->group().turn);
    std::jthread([&] {
      sent = joined.sends->send("x", 1, 0, nullptr);
      tested = joined.sends->test(*request, nullptr);
      received = std::make_unique<Receive>(joined.receives);
    }).join();
  }
  CHECK((*sent && **sent == nullptr));
  CHECK((*tested && !**tested));
  CHECK(received->request == nullptr);
  CHECK_FALSE(received->error);
  CHECK(test::finish(receive));
  CHECK(test::finish(request));
}
