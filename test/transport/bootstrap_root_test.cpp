// What rank 0 makes of what ranks tell it, without connections.
#include "transport/bootstrap_root.h"

#include <array>
#include <string>
#include <vector>

#include "test/catch.h"
#include "transport/bootstrap_calls.h"
#include "transport/bootstrap_history.h"
#include "transport/bootstrap_text.h"
#include "transport/bootstrap_wire.h"

using namespace gyre;
using namespace gyre::transport;

namespace {

/// That a rank waits in call 0, an all_reduce of this plan.
bootstrap::Message waits_in_first_call(uint64_t plan, std::string_view text = "") {
  bootstrap::Message description{bootstrap::Kind::describe, {}};
  bootstrap::put(description.payload, uint64_t{0});
  bootstrap::put(description.payload, plan);
  bootstrap::put(description.payload, uint8_t{0});
  bootstrap::put(description.payload, uint32_t{0});
  description.payload += text;
  return description;
}

}  // namespace

TEST_CASE("the comparison of calls reads well") {
  using bootstrap::Call;
  using bootstrap::compare_calls;
  using bootstrap::Standing;
  const auto in = [](uint64_t number, uint64_t plan, std::string text) { return Standing{Call{number, plan, std::move(text)}, false}; };
  CHECK(compare_calls(7, {in(7, 1, "count=1000 op=sum"), in(7, 2, "count=999 op=sum")}) ==
        "calls differ: rank 1 has count=999, rank 0 has count=1000 (call 7: op=sum)");
  CHECK(compare_calls(7, {in(7, 1, "a=1 b=2"), in(7, 1, "a=1 b=2"), in(7, 2, "a=3 b=4 c=5")}) ==
        "calls differ: rank 2 has a=3 b=4 c=5, ranks 0, 1 have a=1 b=2 no c (call 7)");
  CHECK(compare_calls(7, {in(7, 1, "all_reduce n=1"), in(7, 2, "broadcast n=1")}) ==
        "calls differ: rank 1 has broadcast, rank 0 has all_reduce (call 7: n=1)");
  CHECK(compare_calls(7, {in(7, 1, "n=1"), in(7, 2, "n=1")}) == "calls differ: rank 1 has plan=0x2, rank 0 has plan=0x1 (call 7: n=1)");
  CHECK(compare_calls(7, {in(7, 1, "n=1"), in(8, 1, "n=2"), {}, {std::nullopt, true}}) ==
        "calls differ: rank 1 is in call 8 (n=2), rank 2 is in no call, rank 3 has left, rank 0 is in call 7 (n=1)");
  CHECK(compare_calls(7, {in(7, 1, "n=1"), in(7, 1, "n=1")}) ==
        "a difference between calls was seen, but all ranks describe the same call 7 (n=1)");
  CHECK(bootstrap::ranks_text({0, 1, 2, 4, 5, 6, 7}) == "ranks 0, 1, 2, 4-7");
}

TEST_CASE("rank 0 tells the first failure only") {
  using namespace bootstrap;
  std::vector<std::string> told;
  Root root({"rank 0", "rank 1", "rank 2"}, [&](Rank to, const SharedMessage& m) {
    if (m->kind == Kind::fail) told.push_back(std::to_string(to) + ": " + m->payload.substr(4));
  });
  root.closed(1, "its connection closed");
  root.closed(2, "its connection closed");
  root.take(0, failure_message(Code::internal, "me too"), {});
  CHECK(told == std::vector<std::string>{"0: rank 1 is gone: its connection closed", "2: rank 1 is gone: its connection closed"});
}

TEST_CASE("rank 0 asks again for a history that a call has overtaken") {
  using namespace bootstrap;
  std::vector<std::string> told;
  Root root({"rank 0", "rank 1", "rank 2"}, [&](Rank to, const SharedMessage& m) {
    if (m->kind == Kind::fail && to == 0) told.push_back(m->payload.substr(4));
  });
  std::array<History, 3> made;
  const auto comes = [&](size_t rank) {
    const std::string text = "all_reduce count=" + std::to_string(rank);
    made[rank].name(rank, text);
    made[rank].add(0, rank, false);
    root.take(static_cast<Rank>(rank), waits_in_first_call(rank, text), {});
  };
  comes(0);
  comes(1);
  uint64_t question = 2;  // rank 0's description asked the first
  root.take(2, made[2].message(question), {});
  comes(2);
  root.take(0, made[0].message(question), {});
  root.take(1, made[1].message(question), {});
  CHECK(told.empty());
  ++question;
  for (Rank rank = 0; rank < 3; ++rank) root.take(rank, made[static_cast<size_t>(rank)].message(question), {});
  CHECK(told == std::vector<std::string>{"calls differ: rank 1 has count=1, rank 2 has count=2, rank 0 has count=0 (call 0: all_reduce)"});
}

TEST_CASE("rank 0 takes no rank that has told its calls before it came to a call of all for one that waits there before them") {
  using namespace bootstrap;
  std::vector<std::string> told;
  Root root({"rank 0", "rank 1"}, [&](Rank to, const SharedMessage& m) {
    if (m->kind == Kind::fail && to == 0) told.push_back(m->payload.substr(4));
  });
  History made;
  made.name(7, "all_reduce");
  made.add(0, 7, false);
  root.take(1, waits_in_first_call(7), {});
  root.take(0, History().message(1), {});
  root.take(0, {Kind::gather, {}}, {});  // it has made the call meanwhile, or has not
  root.take(1, made.message(1), {});
  CHECK(told.empty());
  const bool made_it = GENERATE(true, false);
  root.take(1, waits_in_first_call(7), {});
  root.take(0, made_it ? made.message(2) : History().message(2), {});
  root.take(1, made.message(2), {});
  CHECK(told.empty() == made_it);
}

TEST_CASE("rank 0 takes no rank that stays away from a call of all for one that waits in it, nor for one that others wait for there") {
  using namespace bootstrap;
  const bool one_waits = GENERATE(true, false);
  std::vector<std::string> told;
  Root root({"rank 0", "rank 1", "rank 2"}, [&](Rank, const SharedMessage& m) {
    if (m->kind == Kind::fail) told.push_back(m->payload.substr(4));
  });
  root.take(1, {Kind::stay_away, "no"}, {});
  root.take(2, {one_waits ? Kind::gather : Kind::stay_away, "no"}, {});
  History made;
  made.name(7, "all_reduce");
  made.add(0, 7, false);
  root.take(1, waits_in_first_call(7), {});
  for (const Rank rank : {0, 2}) root.take(rank, History().message(1), {});
  root.take(1, made.message(1), {});
  CHECK(told.empty());
}

TEST_CASE("rank 0 tells who did not come to a call of all that has ended") {
  using namespace bootstrap;
  std::vector<std::string> told;
  Root root({"rank 0", "rank 1", "rank 2", "rank 3"}, [&](Rank, const SharedMessage& m) {
    if (m->kind == Kind::no_parts) told.push_back(m->payload.substr(8));
  });
  root.take(0, {Kind::gather, {}}, {});
  root.take(3, {Kind::stay_away, {}}, {});
  Message message{Kind::give_up, {}};
  put(message.payload, uint64_t{1});
  message.payload += "0.2 s";
  root.take(0, message, {});
  CHECK(told == std::vector<std::string>(4, "ranks 1, 2 did not come to a call of all within 0.2 s"));
}
