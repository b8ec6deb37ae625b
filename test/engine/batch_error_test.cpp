// What ranks are told when sends and receives do not fit, when others are in other calls, and when all wait in a circle.
#include <fmt/format.h>

#include "engine/communicator.h"
#include "test/catch.h"
#include "test/engine/backends.h"
#include "test/ranks.h"
#include "test/text.h"
#include "transport/bootstrap_pairs.h"

using namespace gyre;
using namespace gyre::engine;
using gyre::test::all_configured;
using gyre::test::contains;
using gyre::test::error_of;
using gyre::test::run_ranks;
using gyre::test::Words;
using Kind = Transfer::Kind;

namespace {

std::string exchange(Communicator& communicator, std::vector<Transfer> transfers) {
  static thread_local std::array<std::vector<double>, 8> memory;
  for (size_t i = 0; i < transfers.size(); ++i) {
    memory.at(i).assign(transfers[i].count + 1, 0);
    transfers[i].data = memory.at(i).data();
  }
  return error_of(communicator.exchange(transfers));
}
std::string all_reduced(Communicator& communicator, size_t count = 1000) {
  std::vector<float> data(count);
  return error_of(communicator.all_reduce(data.data(), data.data(), count, DataType::float32, ReduceOp::sum));
}

/// Each rank's words over every transport, seen by `check(words)`.
template <class Check>
void everywhere(int ranks, const test::RankBody& body, Check check) {
  for (const auto& [backend, words] : test::run_over_backends(ranks, body)) {
    for (size_t rank = 0; rank < words.size(); ++rank) {
      INFO(backend << ", rank " << rank << ": " << words[rank]);
      CHECK(check(words[rank]));
    }
  }
}

}  // namespace

TEST_CASE("counts and types that differ are an error on both ranks", "[transport]") {
  struct Different {
    size_t count;
    DataType type;
    const char* text;
  };
  for (const Different& d : {Different{999, DataType::float32, "999 of float"}, Different{0, DataType::float32, "0 of float"},
                             Different{1000, DataType::int32, "1000 of int32"}, Different{500000, DataType::float64, "500000 of double"}}) {
    everywhere(
        2,
        [&](Communicator& c) {
          if (c.rank() == 0) return exchange(c, {{Kind::send, 1, nullptr, 1000, DataType::float32}, {Kind::receive, 1, nullptr, 5}});
          std::string said = exchange(c, {{Kind::receive, 0, nullptr, d.count, d.type}});
          return said.empty() ? all_reduced(c) : said;
        },
        [&](const std::string& said) {
          return contains(
              said, fmt::format("sends and receives differ: rank 0 sends 1000 of float to rank 1, which receives {} (message 1)", d.text));
        });
  }
}

TEST_CASE("a sender whose data is out learns by its next call that nobody wanted it", "[transport]") {
  everywhere(
      2,
      [](Communicator& c) {
        if (c.rank() == 1) return exchange(c, {{Kind::receive, 0, nullptr, 7}});
        const std::string said = exchange(c, {{Kind::send, 1, nullptr, 3}});
        return said.empty() ? all_reduced(c) : said;
      },
      [](const std::string& said) { return contains(said, "rank 0 sends 3 of float to rank 1, which receives 7 of float"); });
}

TEST_CASE("a rank that is in a collective while another sends to it or waits for it is named", "[transport]") {
  for (const Kind kind : {Kind::send, Kind::receive}) {
    for (const int ranks : {2, 3}) {
      everywhere(
          ranks,
          [&](Communicator& c) {
            if (c.rank() == 0) return exchange(c, {{kind, 1, nullptr, 1000000}});
            return all_reduced(c);
          },
          [](const std::string& said) {
            return (contains(said, "calls are in different orders: ") || contains(said, "calls differ: ")) &&
                   contains(said, "all_reduce") && contains(said, "exchange");
          });
    }
  }
}

TEST_CASE("ranks that all receive before they send are told of the circle", "[transport]") {
  everywhere(
      3,
      [](Communicator& c) {
        const Rank next = (c.rank() + 1) % 3;
        const std::string said = exchange(c, {{Kind::receive, (c.rank() + 2) % 3, nullptr, 10}});
        return said.empty() ? exchange(c, {{Kind::send, next, nullptr, 10}}) : said;
      },
      [](const std::string& said) { return contains(said, "calls are in different orders: ") && contains(said, "message 1 from rank 2"); });
}

TEST_CASE("a group that can't be run names the transfer, and the communicator works afterwards", "[transport]") {
  const auto told = [](const std::vector<Transfer>& transfers) {
    return run_ranks(1, all_configured({"GYRE_TRANSPORT=loopback"}), [&](Communicator& c) {
      const std::string said = error_of(c.exchange(transfers));
      const std::string after = all_reduced(c) + error_of(c.exchange({}));
      return after.empty() ? said : after;
    })[0];
  };
  alignas(8) std::array<float, 8> a{};
  CHECK(told({}).empty());
  CHECK(told({{Kind::send, 1, a.data(), 1}}) == "exchange: transfer 0 (to rank 1): there are 1 ranks");
  CHECK(told({{Kind::receive, -1, a.data(), 1}}) == "exchange: transfer 0 (from rank -1): there are 1 ranks");
  CHECK(told({{Kind::send, 0, nullptr, 1}}) == "exchange: transfer 0 (to rank 0): null buffer for 1 elements");
  CHECK(told({{Kind::send, 0, a.data() + 1, 1, DataType::float64}}) ==
        "exchange: transfer 0 (to rank 0): the buffer must be aligned to 8 bytes");
  CHECK(told({{Kind::send, 0, a.data(), 1, static_cast<DataType>(12)}}) == "exchange: transfer 0 (to rank 0): there is no type 12");
  CHECK(contains(told({{Kind::send, 0, a.data(), SIZE_MAX}}), "are more than 8796093022208 bytes"));
  CHECK(told({{Kind::send, 0, a.data(), 1}}) == "exchange: rank 0 sends itself 1 messages and receives 0");
  CHECK(told({{Kind::send, 0, a.data(), 1}, {Kind::receive, 0, a.data() + 2, 2}}) ==
        "exchange: rank 0 sends itself 1 of float and receives 2 of float");
}

TEST_CASE("ranks that wait in a circle are found, and no others", "[transport]") {
  using transport::Pair;
  using transport::bootstrap::Call;
  using transport::bootstrap::waits_in_a_circle;
  using Calls = std::vector<std::optional<Call>>;
  const auto in_call = [](uint64_t number, std::vector<Pair> pairs = {}) { return Call{number, 1, "all_reduce", std::move(pairs)}; };
  const auto exchanges = [](uint64_t next, std::vector<Pair> pairs) { return Call{next, 0, "exchange", std::move(pairs)}; };
  const Pair gets_4{0, 3, 4, 0, 4};  // from rank 0, of which 3 have come

  CHECK(waits_in_a_circle({}) == "");
  CHECK(waits_in_a_circle(Calls{in_call(7), in_call(7), in_call(6)}) == "");
  CHECK(
      waits_in_a_circle(Calls{in_call(7, {{1, 3, 3, 0, 0}}), exchanges(7, {gets_4})}) ==
      "calls are in different orders: rank 0 waits in call 7 (all_reduce) for rank 1, rank 1 waits in an exchange before call 7 (exchange) "
      "for message 4 from rank 0");
  // Rank 0 has sent it, so it is on its way; rank 0 is in no call; rank 1 is past the call that rank 0 was in.
  CHECK(waits_in_a_circle(Calls{in_call(7, {{1, 4, 3, 0, 0}}), exchanges(7, {gets_4})}) == "");
  CHECK(waits_in_a_circle(Calls{std::nullopt, exchanges(7, {gets_4})}) == "");
  CHECK(waits_in_a_circle(Calls{in_call(6, {{1, 3, 3, 0, 0}}), exchanges(7, {gets_4})}) == "");
  // Rank 2 is late, and rank 1 waits for it: no circle, until rank 2 is found to wait for the call too.
  const Pair from_2{2, 0, 1, 0, 1};
  CHECK(waits_in_a_circle(Calls{in_call(7), exchanges(7, {from_2}), std::nullopt}) == "");
  CHECK(waits_in_a_circle(Calls{in_call(7), exchanges(7, {from_2}), in_call(7)}) != "");
  CHECK(waits_in_a_circle(Calls{in_call(7), exchanges(7, {from_2}), exchanges(7, {{0, 1, 0, 1, 0}})}) != "");
}
