// Prices of direct forms, by hand.
#include "topo/direct_cost.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "test/catch.h"
#include "topo/constants.h"
#include "topo/select.h"

using namespace gyre;
using namespace gyre::topo;

namespace {

constexpr DirectCosts prices{
    .meeting = 100, .peer = 10, .leaving = 5, .shown = 3, .cached = 1, .cache_bytes = 4000, .memory = 7, .attaching = 50, .attached = 2};

schedule::Direct staged(Collective collective, int ranks) { return schedule::staged({collective, ranks, 0, 1}); }
schedule::Direct mapped(Collective collective, int ranks) { return schedule::mapped({collective, ranks, 0, 1}); }

}  // namespace

TEST_CASE("a staged form meets once, shows its input, reads what others show, and writes its output") {
  const Price p = price(staged(Collective::all_reduce, 4), prices, 100, 0);
  CHECK(p.latency == 100 + 3 * 10);
  CHECK(p.bytes[inside] == (100 + 3 * 100) * 3);
  CHECK(p.computing == 100 + 100);
  CHECK(p.seconds == p.latency + p.bytes[inside] + p.computing);
}

TEST_CASE("a mapped form waits for all before and after, and shares the work on all buffers") {
  const Price p = price(mapped(Collective::all_reduce, 4), prices, 100, 0);
  CHECK(p.latency == 100 + 3 * 10 + 5);
  CHECK(p.bytes[inside] == 0);
  CHECK(p.computing == (4 + 4) * 25);  // a quarter of everybody's input, and of everybody's output
}

TEST_CASE("the busiest rank counts, or where processors are shared the work of all") {
  // Staged, the root shows what it has and copies it, the others wait for it and copy what it shows.
  const Price own = price(staged(Collective::broadcast, 4), prices, 100, 0);
  CHECK(own.latency == 100 + 10);
  CHECK(own.bytes[inside] + own.computing == 100 * 3 + 2 * 100);  // the root's
  const schedule::Direct gather = mapped(Collective::gather, 4);
  CHECK(price(gather, prices, 100, 4).computing == price(gather, prices, 100, 0).computing);
  CHECK(price(gather, prices, 100, 1).computing == 4 * (100 + 100));
  CHECK(price(gather, prices, 100, 2).computing == 4 * (100 + 100) / 2);
}

TEST_CASE(
    "attached, what comes from another rank's buffer is by a system call, and on copies what others reach of a rank's moves twice more") {
  const auto price_of = [](Collective collective, BufferAccess access) {
    return price(mapped(collective, 4), prices, 100, 0, access).computing;
  };
  CHECK(price_of(Collective::all_gather, BufferAccess::heap) == 4 * 200);
  CHECK(price_of(Collective::all_gather, BufferAccess::attached) == 4 * 200 + 3 * (50 + 100 * 2));
  CHECK(price_of(Collective::reduce_scatter, BufferAccess::attached) == (4 + 1) * 100 + 3 * (50 + 100 * 2));
  CHECK(price_of(Collective::all_reduce, BufferAccess::bounced) == (4 + 4) * 25 + 2 * 2 * (100 - 25));
  CHECK(price_of(Collective::reduce_scatter, BufferAccess::bounced) == (4 + 1) * 100 + 2 * 3 * 100);
  CHECK(price_of(Collective::all_gather, BufferAccess::bounced) == 4 * 200 + 2 * 100);
}

TEST_CASE("buffers that fit no cache cost what memory prices") {
  const schedule::Direct form = mapped(Collective::all_reduce, 2);
  CHECK(price(form, prices, 1000, 0).computing == 2000 * prices.cached);  // 4 buffers of 1000 bytes fit
  CHECK(price(form, prices, 1001, 0).computing == Approx(2002 * prices.memory));
}

TEST_CASE("the table begins with the direct forms") {
  Query query;
  query.block_bytes = 8;
  query.ranks = 2;
  Profiles profiles;
  const Choice choice = choose(query, profiles);
  const std::vector<DirectCandidate> direct{{"one_shot", "staged", price(staged(Collective::all_reduce, 2), prices, 8, 0), {}, "runs"},
                                            {"two_shot", "mapped", {}, "nobody knows", ""}};
  const std::string table = explain(query, choice, direct);
  const std::string without = explain(query, choice);
  CHECK(without.find("staged") == std::string::npos);
  const size_t first = table.find("one_shot          staged");
  REQUIRE(first != std::string::npos);
  CHECK(table.find("a rank's own part; runs\n", first) != std::string::npos);
  const size_t second = table.find("two_shot          mapped                1 refused: nobody knows\n");
  CHECK((second != std::string::npos && first < second && second < table.find("ring  ")));
}

TEST_CASE("constants: direct forms' and packets' are read, and older files that have none are, too") {
  const auto with = [](std::string_view direct, std::string_view name) {
    return parse_constants(fmt::format(R"({{"links":{{"a":{{"alpha_us":1,"beta_ns_per_byte":1,"overhead_us":0,"by_processor":true,"origin":
      {{"machine":"","date":"","command":"","note":"x"}}}}}},"ranks":{{"a":{{"gamma_ns_per_byte":0,"copy_ns_per_byte":0,"step_us":0,"origin":
      {{"machine":"","date":"","command":"","note":"x"}}}}}},{}"machines":{{"m":{{"local":"a","network":"a","rank":"a",{}
      "nics_per_node":0,"processors_per_node":0}}}}}})",
                                       direct, name),
                           "my.json");
  };
  constexpr auto one =
      R"("direct":{"d":{"meeting_us":1,"peer_us":2,"leaving_us":7,"shown_ns_per_byte":3,"cached_ns_per_byte":4,"cache_bytes":5,
    "memory_ns_per_byte":6,"attaching_us":8,"attached_ns_per_byte":9,"origin":{"machine":"","date":"","command":"","note":"guessed"}}},)";
  const auto read = with(one, R"("direct":"d",)");
  REQUIRE(read);
  const DirectCosts d = read->machine("m")->direct.value();
  CHECK((d.meeting == Approx(1e-6) && d.peer == Approx(2e-6) && d.leaving == Approx(7e-6) && d.shown == Approx(3e-9) &&
         d.cached == Approx(4e-9)));
  CHECK((d.attaching == Approx(8e-6) && d.attached == Approx(9e-9)));
  CHECK((d.cache_bytes == 5 && d.memory == Approx(6e-9) && read->origins.at("direct.d") == "guessed"));
  CHECK_FALSE(with("", "")->machine("m")->direct);
  CHECK(with("", R"("direct":"d",)").error().what == R"(my.json: machines.m.direct = "d": there is no such entry in "direct")");
  for (const char* machine : {"host", "host_crowded"}) CHECK(default_constants()->machine(machine)->direct);
  constexpr auto packets =
      R"("packets":{"p":{"latency_us":2,"part_ns_per_byte":3,"origin":{"machine":"","date":"","command":"","note":"guessed"}}},)";
  const auto with_packets = with(packets, R"("packets":"p",)");
  REQUIRE(with_packets);
  const PacketCosts p = with_packets->machine("m")->packets.value();
  CHECK((p.latency == Approx(2e-6) && p.part == Approx(3e-9) && with_packets->origins.at("packets.p") == "guessed"));
  CHECK_FALSE(with("", "")->machine("m")->packets);
  CHECK(with("", R"("packets":"p",)").error().what == R"(my.json: machines.m.packets = "p": there is no such entry in "packets")");
  CHECK(default_constants()->machine("gpu")->packets);
  CHECK_FALSE(default_constants()->machine("gpu_pinned")->packets);
}

TEST_CASE("constants: bounds of direct forms are whole numbers, with their origin; a file that has none has those compiled in") {
  auto text = nlohmann::json::parse(*constants_text(""));
  const auto parsed = [&] { return parse_constants(text.dump(), "my.json"); };
  const DirectBounds bounds = parsed()->machine("host_crowded")->direct_bounds.value();
  CHECK((bounds.read_by_all_elements == 4096 && bounds.attached_most_read == 16 << 20 && bounds.attaches(64)));
  CHECK((bounds.bounced_most_scattered == 1 << 20 && !bounds.bounced_all_to_all && !bounds.attached_reduces));
  for (const char* key : {"bounced_scatters", "bounced_most_scattered_bytes", "bounced_all_to_all", "attached_reduces"})
    text["direct_bounds"]["host_crowded"].erase(key);
  const DirectBounds older = parsed()->machine("host_crowded")->direct_bounds.value();
  CHECK_FALSE((older.bounced_scatters || older.bounced_all_to_all || older.attached_reduces));
  CHECK((!parsed()->machine("host")->direct_bounds->attaches(3) && !parsed()->machine("host_tcp")->direct_bounds));
  nlohmann::json& host = text["direct_bounds"]["host"];
  host["shown_bytes"] = 0.5;
  CHECK(parsed().error().what == "my.json: direct_bounds.host.shown_bytes = 0.5: must be a whole number");
  host["shown_bytes"] = 700;
  CHECK(costs_here(*parsed(), "my.json", "host")->direct_bounds->shown == 700);
  host["read_by_all_most_bytes"] = 1;
  CHECK(parsed().error().what == "my.json: direct_bounds.host.read_by_all_most_bytes = 1: is less than read_by_all_least_bytes");
  host.erase("origin");
  host["read_by_all_most_bytes"] = 4096;
  CHECK(parsed().error().what == "my.json: direct_bounds.host.origin: is missing");
  text.erase("direct_bounds");
  for (auto& machine : text["machines"]) machine.erase("direct_bounds");
  CHECK_FALSE(parsed()->machine("host")->direct_bounds);
  CHECK(costs_here(*parsed(), "my.json", "host")->direct_bounds->shown == default_constants()->machine("host")->direct_bounds->shown);
}
