#include "topo/cost.h"

#include "schedule/fuse.h"
#include "test/all_reduce.h"
#include "test/catch.h"
#include "topo/constants.h"

using namespace gyre;
using namespace gyre::topo;

namespace {

Costs ideal(double alpha, double beta, double gamma = 0) {
  Costs costs;
  for (auto& link : costs.link) link.alpha = alpha, link.beta = beta;
  costs.rank.gamma = gamma;
  return costs;
}
constexpr schedule::Cut whole{};

Profile counted(std::string_view family, int ranks) { return profile(schedule::fuse(test::all_reduce(family, ranks)), {}); }

}  // namespace

TEST_CASE("an ideal ring costs 2(N-1)(alpha + M/N beta) + (N-1)M/N gamma") {
  for (int n = 2; n <= 32; ++n) {
    const double chunk = 3e6 / n;
    const Price p = price(counted("ring", n), ideal(2e-6, 1e-10, 3e-11), 3e6, whole);
    CHECK(p.seconds == Approx(2 * (n - 1) * (2e-6 + chunk * 1e-10) + (n - 1) * chunk * 3e-11).epsilon(1e-12));
    CHECK(p.latency == Approx(2 * (n - 1) * 2e-6).epsilon(1e-12));
    CHECK(p.bytes[inside] == Approx(2 * (n - 1) * chunk * 1e-10).epsilon(1e-12));
    CHECK(p.computing == Approx((n - 1) * chunk * 3e-11).epsilon(1e-12));
  }
}

TEST_CASE("the published parameter server: both directions, and the ring's traffic") {
  for (const int n : {2, 10}) {
    const double bytes = 1.2e9;
    const double naive = price(counted("naive", n), ideal(0, 1e-9), bytes, whole).seconds;
    const double ring = price(counted("ring", n), ideal(0, 1e-9), bytes, whole).seconds;
    CHECK(naive == Approx(2 * (n - 1) * 1.2));  // the published 1.2 s and 10.8 s are one direction's
    CHECK(ring == Approx(2.4 * (n - 1) / n));
  }
}

TEST_CASE("slices overlap what is different, not what is the same") {
  const Profile ring = counted("ring", 2);
  const Costs costs = ideal(1e-6, 1e-9, 1e-9);
  const double in_one = price(ring, costs, 1e6, whole).seconds;
  const double in_slices = price(ring, costs, 1e6, schedule::Cut{1, 8, 1}).seconds;
  CHECK(in_slices < in_one);
  CHECK(in_slices > 1e6 * 1e-9);
}

TEST_CASE("a size is priced as the engine cuts it, also where that is even") {
  const Profile ring = counted("ring", 4);
  const Costs costs = ideal(1e-6, 1e-9);
  const schedule::Cutting cutting{};
  for (const size_t block : std::vector<size_t>{4, 1000, 4 << 10, 128 << 10, (128 << 10) + 4, 1 << 20}) {
    const schedule::Cut cut = schedule::cut((block + 3) / 4, 1, 1, cutting);
    CHECK(price(ring, costs, static_cast<double>(block), cutting).seconds ==
          Approx(price(ring, costs, static_cast<double>(block), cut, cutting.credits).seconds));
  }
}

TEST_CASE("a connection's messages beyond its credits wait until others were taken") {
  // Each rank's 31 or 32 blocks pass in four turns, the later three there and back; the server's own block is sent at once.
  for (const auto& [collective, us] : {std::pair{Collective::all_gather, 7}, {Collective::reduce_scatter, 8}}) {
    const Profile naive = *profile("naive", {collective, 32, 1, 0, {}}, {});
    const Costs costs = ideal(1e-6, 0);
    CHECK(price(naive, costs, 8, whole, 32).seconds == Approx(2e-6));
    CHECK(price(naive, costs, 8, whole, 8).seconds == Approx(us * 1e-6));
    CHECK(price(naive, costs, 8, whole, 8).limit == "credits of a connection");
  }
}

TEST_CASE("prices grow with the size and with every cost") {
  const auto machine = default_constants()->machine("gpu_cluster");
  REQUIRE(static_cast<bool>(machine));
  const Profile p = profile(schedule::fuse(test::all_reduce("ring", 12)), {4});
  double before = 0;
  for (double bytes = 8; bytes <= 1 << 30; bytes *= 2) {
    const double now = price(p, *machine, bytes, schedule::Cutting{}).seconds;
    CHECK(now >= before);
    Costs dearer = *machine;
    dearer.link[between].alpha *= 2, dearer.link[between].beta *= 2;
    CHECK(price(p, dearer, bytes, schedule::Cutting{}).seconds >= now);  // a processor may be what holds it up
    before = now;
  }
}

TEST_CASE("constants: every error names the file, the key and the value") {
  const auto what = [](std::string_view text) {
    const auto parsed = parse_constants(text, "my.json");
    return parsed ? std::string() : parsed.error().what;
  };
  CHECK(what("") == "my.json: is not JSON: line 1, column 1");
  CHECK(what("{") == "my.json: is not JSON: line 1, column 2");
  CHECK(what("{\"links\": {},\n \"ranks\" {}}") == "my.json: is not JSON: line 2, column 10");
  CHECK(what("{\n\n") == "my.json: is not JSON: line 3, column 1");
  CHECK(what("[]") == "my.json: must be an object");
  CHECK(what(R"({"links":{}})") == "my.json: ranks: is missing");
  const std::string links = R"("links":{"a":{"alpha_us":-1,"beta_ns_per_byte":1,"overhead_us":0,"by_processor":false}})";
  CHECK(what("{" + links + R"(,"ranks":{},"machines":{}})") == "my.json: links.a.alpha_us = -1: must be from 0 to 1e9");
  CHECK(what(R"({"links":{},"ranks":{},"machines":{"m":{"local":"x"}}})") ==
        R"(my.json: machines.m.local = "x": there is no such link in "links")");
  CHECK(what(R"({"links":{"a":{"alpha":1}},"ranks":{},"machines":{}})") ==
        "my.json: links.a.alpha = 1: unknown; known are alpha_us, beta_ns_per_byte, by_processor, origin, overhead_us");
  CHECK(what(R"({"links":{},"ranks":{},"machines":{},"links":{}})") == R"(my.json: "links" stands twice in an object)");
  CHECK(what(R"({"links":{"links":{"links":0}}})") == "my.json: ranks: is missing");
  CHECK(what(std::string(1 << 19, '[') + std::string(1 << 19, ']')) == "my.json: is nested more than 64 deep");
  CHECK(what(R"({"on\ntwo lines":")" + std::string(1000, 'x') + "\"}") ==
        R"(my.json: "on\ntwo lines" = ")" + std::string(79, 'x') +
            "…: unknown; known are about, direct, direct_bounds, links, machines, made_for, nccl, packets, ranks");
}

TEST_CASE("constants: what the file says to NCCL's tuner is not looked at, and is no constant") {
  CHECK(parse_constants(R"({"links":{},"ranks":{},"machines":{},"nccl":{"jobs":7}})", "my.json"));
  CHECK(parse_constants(R"({"nccl":{}})", "my.json").error().what ==
        "my.json: machines: is missing: the file says what NCCL chooses (GYRE_TUNER_FILE), not what things cost here");
}

TEST_CASE("constants that were made for a machine and a version of gyre are refused by others, with the reason") {
  const auto parsed = parse_constants(
      R"({"made_for":{"processor":"abacus","processors":4,"gyre":"1.0.0"},"links":{},"ranks":{},"machines":{}})", "my.json");
  REQUIRE(static_cast<bool>(parsed));
  REQUIRE(parsed->made_for.has_value());
  CHECK(parsed->made_for->foreign({"abacus", 4}, "1.0.0") == "");
  CHECK(parsed->made_for->foreign({"abacus", 8}, "1.0.0") == "made for 4 × abacus, and this machine has 8 × abacus");
  CHECK(parsed->made_for->foreign({"loom", 4}, "1.0.0") == "made for 4 × abacus, and this machine has 4 × loom");
  CHECK(parsed->made_for->foreign({"abacus", 4}, "1.0.1") == "made for gyre 1.0.0, and this is gyre 1.0.1");
  const auto wrong = parse_constants(
      R"({"made_for":{"processor":"abacus","processors":"many","gyre":"1"},"links":{},"ranks":{},"machines":{}})", "my.json");
  CHECK(wrong.error().what == R"(my.json: made_for.processors = "many": must be a whole number)");
}

TEST_CASE("the constants compiled in are whole, and all say where they are from") {
  const auto constants = default_constants();
  REQUIRE(static_cast<bool>(constants));
  CHECK(constants->machine("host"));
  CHECK_FALSE(constants->machine("hots"));
  CHECK(constants->machine("hots").error().what.find("did you mean host?") != std::string::npos);
  for (const auto& [name, origin] : constants->origins) {
    INFO(name);
    CHECK_FALSE(origin.empty());
  }
}
