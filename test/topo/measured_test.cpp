#include "topo/measured.h"

#include "base/text.h"
#include "test/catch.h"
#include "topo/constants.h"
#include "topo/json_object.h"
#include "topo/select.h"

using namespace gyre;
using namespace gyre::topo;

namespace {

using nlohmann::json;

json ring_and_tree() {
  return json::parse(R"([{"collective": "all_reduce", "ranks": 4, "bytes": [8, 1000, 2000], "times": [
    {"algorithm": "ring", "grid": [], "us": [10, 20, 40]}, {"algorithm": "bucket", "grid": [2, 2], "us": [1, 30, 50]}]}])");
}
Result<std::vector<Measured>> parsed(const json& measured) {
  const json machine{{"measured", measured}};
  return parse_measured(JsonObject(machine, "file", "machines.host"), "measured");
}
std::string refused(const std::string& pointer, const json& value) {
  json wrong = ring_and_tree();
  wrong[json::json_pointer(pointer)] = value;
  const auto result = parsed(wrong);
  return result ? "" : result.error().what;
}

Query of(double bytes, std::vector<Measured> measured) {
  Query query;
  query.ranks = 4;
  query.block_bytes = bytes;
  query.channels = 2;
  query.shape_channels = 1;
  query.costs = *default_constants()->machine("host");
  query.costs.measured = std::move(measured);
  return query;
}

}  // namespace

TEST_CASE("a size lies between two that were measured, or is one, or beyond all") {
  const auto all = *parsed(ring_and_tree());
  const Shape ring{Collective::all_reduce, 4, 1, 0, {}};
  struct {
    double bytes, below, above, part, us_below, us_above;
  } cases[] = {{0, 8, 8, 0, 10, 10},
               {8, 8, 8, 0, 10, 10},
               {504, 8, 1000, 0.5, 10, 20},
               {1000, 8, 1000, 1, 10, 20},
               {1250, 1000, 2000, 0.25, 20, 40},
               {8000, 2000, 2000, 0, 40, 40}};
  for (const auto& c : cases) {
    const auto beside = measured_beside(all, "ring", ring, 0, c.bytes);
    INFO(c.bytes);
    REQUIRE(beside.has_value());
    CHECK((beside->bytes[0] == c.below && beside->bytes[1] == c.above));
    CHECK(beside->part == Approx(c.part));
    CHECK(beside->seconds[0] * 1e6 == Approx(c.us_below));
    CHECK(beside->seconds[1] * 1e6 == Approx(c.us_above));
  }
  CHECK(measured_beside(all, "bucket", {Collective::all_reduce, 4, 1, 0, {2, 2}}, 0, 8)->seconds[0] * 1e6 == Approx(1));
  CHECK_FALSE(measured_beside(all, "bucket", ring, 0, 8).has_value());
  CHECK_FALSE(measured_beside(all, "tree", ring, 0, 8).has_value());
  CHECK_FALSE(measured_beside(all, "ring", ring, 2, 8).has_value());
  CHECK_FALSE(measured_beside(all, "ring", {Collective::all_reduce, 5, 1, 0, {}}, 0, 8).has_value());
  CHECK_FALSE(measured_beside(all, "ring", {Collective::all_gather, 4, 1, 0, {}}, 0, 8).has_value());
}

TEST_CASE("where a size was measured its time is that one, and elsewhere the price, corrected") {
  Profiles profiles;
  const auto all = *parsed(ring_and_tree());
  const auto seconds = [&](double bytes) { return *choose(of(bytes, all), profiles).cheapest("ring")->measured; };
  for (const auto& [bytes, us] : {std::pair{8.0, 10.0}, {1000, 20}, {2000, 40}}) CHECK(seconds(bytes) * 1e6 == Approx(us));
  const auto off = [&](double bytes) { return seconds(bytes) / choose(of(bytes, all), profiles).cheapest("ring")->price.seconds; };
  CHECK(off(1500) == Approx((off(1000) + off(2000)) / 2));
  CHECK(off(1e6) == Approx(off(2000)));
  CHECK(off(1) == Approx(off(8)));
}

TEST_CASE("what was measured decides, where it was") {
  Profiles profiles;
  const auto chosen = [&](const Query& query) { return std::string(choose(query, profiles).best()->family); };
  std::vector<Measured> all = *parsed(ring_and_tree());
  all[0].times[1].family = "tree";
  all[0].times[1].grid.clear();
  for (MeasuredTimes& times : all[0].times)
    for (double& seconds : times.seconds) seconds *= 1e-6;  // faster than any price
  for (const double bytes : {8.0, 1000.0}) {
    const std::string fastest = bytes < 10 ? "tree" : "ring";
    CHECK(chosen(of(bytes, {})) != fastest);
    CHECK(chosen(of(bytes, all)) == fastest);
    Query other = of(bytes, all);
    other.placement.per_node = 2;  // was measured on one host
    CHECK(chosen(other) == chosen([&] {
            Query without = other;
            without.costs.measured.clear();
            return without;
          }()));
    other.costs.measured[0].per_node = 2;
    CHECK(chosen(other) == fastest);
    other = of(bytes, all);
    other.ordered = true;
    CHECK_FALSE(choose(other, profiles).best()->measured.has_value());
    other = of(bytes, all);
    other.shape_channels = 2;
    CHECK_FALSE(choose(other, profiles).best()->measured.has_value());
  }
}

TEST_CASE("candidates without times are beside those that have some") {
  // Where processors are shared, candidates that weigh alike are decided by something else: by weights of one kind.
  Query query = of(1e6, *parsed(ring_and_tree()));
  query.costs = *default_constants()->machine("host_tcp_crowded");
  query.costs.processors_per_node = 2;
  query.slots = false;
  for (const double seconds : {18.0, 1e-9}) {
    query.costs.measured = *parsed(ring_and_tree());
    query.costs.measured[0].times[0].family = "two_shot";
    query.costs.measured[0].times[0].seconds = {seconds, seconds, seconds};
    Profiles profiles;
    CHECK((choose(query, profiles).best()->family == "two_shot") == (seconds < 1));
  }
}

TEST_CASE("what is measured of nothing, or not rising, or of something unknown, is refused by its place") {
  CHECK(parsed(json::array())->empty());
  CHECK(refused("/0/collective", "allreduce").find("machines.host.measured[0].collective = \"allreduce\"") != std::string::npos);
  CHECK(refused("/0/ranks", -1).find("measured[0].ranks = -1: must be from 0") != std::string::npos);
  CHECK(refused("/0/bytes", json::array()).find("bytes = []: must be 1 to 1024 whole numbers") != std::string::npos);
  CHECK(refused("/0/bytes", {8U, 9U, uint64_t{1} << 40}).empty());
  CHECK(refused("/0/times/1/grid", {4U}).empty());
  CHECK(refused("/0/bytes", {8U, 9U, uint64_t{1} << 61}).find("up to 2^60") != std::string::npos);
  CHECK(refused("/0/bytes", {8U, 8U, 9U}).find("must rise") != std::string::npos);
  CHECK(refused("/0/bytes", {8U, 9.5, 10U}).find("whole numbers") != std::string::npos);
  CHECK(refused("/0/bytes", {-8, 9U, 10U}).find("whole numbers") != std::string::npos);
  CHECK(refused("/0/bytes", {{"a", 1}}).find("bytes") != std::string::npos);
  CHECK(refused("/0/per_node", 4).find("per_node = 4: must be less than ranks") != std::string::npos);
  CHECK(refused("/0/times/1/algorithm", "rign").find("\"rign\": there is none") != std::string::npos);
  CHECK(refused("/0/times/1/grid", {2U, 3U}).find("has not 4 places") != std::string::npos);
  CHECK(refused("/0/times/1/grid", {2U, 2.9}).find("extents") != std::string::npos);
  CHECK(refused("/0/times/1", ring_and_tree()[0]["times"][0]).find("twice") != std::string::npos);
  CHECK(refused("/1", ring_and_tree()[0]).find("measured[1].ranks = 4: stands there twice") != std::string::npos);
  CHECK(refused("/0/times/1/us", {1, 0, 2}).find("more than 0") != std::string::npos);
  CHECK(refused("/0/times", 3).find("times = 3: must be a list") != std::string::npos);
  CHECK(refused("/0/times/1/us", {1, 2}).find("measured[0].times[1].us = [1,2]: must be 3 numbers") != std::string::npos);
  CHECK(refused("/0/times/1/grid", "2x2").find("grid") != std::string::npos);
  CHECK(refused("/0/times/1/algoritm", "ring").find("algoritm") != std::string::npos);
  CHECK(refused("/0/times/0", 1).find("must be an object") != std::string::npos);
  CHECK(refused("", json::object()).find("must be a list") != std::string::npos);
}
