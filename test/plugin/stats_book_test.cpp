#include "plugin/stats_book.h"

#include <fmt/format.h>

#include <map>
#include <memory>

#include "test/catch.h"
#include "test/plugin/to_peer.h"

using namespace gyre::plugin;
using gyre::test::to_peer;

namespace {

void live(StatsBook& book, const std::string& peer) {
  Counters counters;
  book.opened(to_peer(peer), counters);
  counters.bytes.add(1);
  counters.messages.add(2);
  counters.retries.add(3);
  counters.waited_ns.add(4);
  counters.errors.add(5);
  book.closed(counters);
}

std::map<std::string, uint64_t> earlier_of(const StatsReport& report) {
  std::map<std::string, uint64_t> peers;
  for (const auto& peer : report.earlier) peers[peer.peer] = peer.connections;
  return peers;
}

}  // namespace

TEST_CASE("connections are told in the order they were opened, with what they count now") {
  StatsBook book;
  Counters first;
  Counters second;
  Counters third;
  book.opened(to_peer("a"), first);
  book.opened(to_peer("b"), second);
  book.opened(to_peer("c"), third);
  first.bytes.add(1);
  second.bytes.add(2);
  third.errors.add(1);
  book.closed(second);
  first.bytes.add(10);
  second.bytes.add(10);  // nobody looks there any more
  const auto report = book.report();
  REQUIRE(report.connections.size() == 3);
  CHECK(report.connections[0].peer == "a");
  CHECK(report.connections[0].state == "open");
  CHECK(report.connections[0].figures.bytes == 11);
  CHECK(report.connections[1].number == 2);
  CHECK(report.connections[1].state == "closed");
  CHECK(report.connections[1].figures.bytes == 2);
  CHECK(report.connections[2].state == "lost");
  CHECK(book.has_open());
}

TEST_CASE("what was closed before, or never opened, is closed without effect") {
  StatsBook book;
  Counters counters;
  book.closed(counters);
  book.opened(to_peer("a"), counters);
  book.closed(counters);
  book.closed(counters);
  CHECK_FALSE(book.has_open());
  CHECK(book.report().connections.size() == 1);
}

TEST_CASE("what is kept of closed connections is bounded, and nothing of it is lost") {
  StatsBook book({.closed = 4, .peers = 3});
  for (int i = 0; i < 100; ++i) live(book, fmt::format("peer {}", i % 10));
  const auto report = book.report();
  REQUIRE(report.connections.size() == 4);
  CHECK(report.connections.front().number == 97);
  CHECK(report.connections.back().number == 100);
  CHECK(earlier_of(report) == std::map<std::string, uint64_t>{{"others", 66}, {"peer 0", 10}, {"peer 1", 10}, {"peer 2", 10}});
  const Figures totals = report.totals();
  CHECK(totals.bytes == 100);
  CHECK(totals.messages == 200);
  CHECK(totals.retries == 300);
  CHECK(totals.waited_ns == 400);
  CHECK(totals.errors == 500);
}

TEST_CASE("earlier connections of the two directions are summed up apart") {
  StatsBook book({.closed = 0, .peers = 1});
  live(book, "a");
  Counters counters;
  auto about = to_peer("a");
  about.direction = "receive";
  book.opened(about, counters);
  book.closed(counters);
  const auto report = book.report();
  REQUIRE(report.earlier.size() == 2);
  CHECK(report.earlier[0].direction == "receive");
  CHECK(report.earlier[0].figures.bytes == 0);
  CHECK(report.earlier[1].direction == "send");
  CHECK(report.earlier[1].figures.bytes == 1);
}
