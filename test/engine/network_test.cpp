#include "engine/network.h"

#include "engine/choice.h"
#include "test/catch.h"

using namespace gyre;
using namespace gyre::engine;

namespace {

Facts at(const std::string& host, std::vector<std::string> backends, const std::string& reason_for_ucx = "") {
  Facts facts;
  facts.host = host;
  facts.backends = std::move(backends);
  facts.processors = {3};
  facts.reason_for_ucx = reason_for_ucx;
  facts.slots_by_default = true;
  return facts;
}

Config named(const std::string& transport) {
  Config config;
  REQUIRE(config.set("GYRE_TRANSPORT", transport, "test"));
  return config;
}

}  // namespace

TEST_CASE("auto passes ucx over for tcp, unless either rank has a reason for it, or no tcp") {
  const Facts plain = at("a", {"ucx", "tcp"});
  const Facts asks = at("b", {"ucx", "tcp"}, "UCX_TLS=tcp");
  const Facts without = at("c", {"ucx"});
  CHECK(passed_over("ucx", plain, plain) != "");
  for (const auto& [a, b] : {std::pair{plain, asks}, std::pair{asks, plain}, std::pair{asks, asks}, std::pair{plain, without}}) {
    CHECK(passed_over("ucx", a, b).empty());
    CHECK(passed_over("tcp", a, b).empty());  // it is what is left, should ucx not join them
  }
  CHECK(passed_over("tcp", plain, plain).empty());
  CHECK(passed_over("verbs", plain, plain).empty());
}

TEST_CASE("all is over tcp where it is named, or nothing else can be taken") {
  const Config any = named("auto");
  const std::vector<std::string> both{"shm", "ucx", "tcp"};
  CHECK(all_over_tcp(named("tcp"), {at("a", both), at("a", both)}));
  CHECK_FALSE(all_over_tcp(named("ucx"), {at("a", both), at("b", both)}));
  CHECK(all_over_tcp(any, {at("a", both), at("b", both), at("c", both)}));
  CHECK_FALSE(all_over_tcp(any, {at("a", both), at("b", both), at("b", both)}));
  CHECK_FALSE(all_over_tcp(any, {at("a", both), at("b", both, "UCX_TLS=rc")}));
  CHECK_FALSE(all_over_tcp(any, {at("a", {"verbs", "tcp"}), at("b", {"verbs", "tcp"})}));
  CHECK(all_over_tcp(any, {at("a", {"verbs", "tcp"}), at("b", {"tcp"})}));
  CHECK_FALSE(all_over_tcp(any, {at("a", both)}));
}

TEST_CASE("over tcp slots are larger and fewer, on all ranks, unless one has set them") {
  std::vector<Facts> facts{at("a", {"tcp"}), at("b", {"tcp"})};
  CHECK(*suited(named("auto"), facts).slot_bytes == 256 << 10);
  CHECK(*suited(named("auto"), facts).slots == 4);
  CHECK(*suited(named("shm"), facts).slot_bytes == 64 << 10);
  CHECK(machine(named("auto"), facts) == "host_tcp");
  facts[1].slots_by_default = false;
  CHECK(*suited(named("auto"), facts).slot_bytes == 64 << 10);
  CHECK(*suited(named("auto"), facts).slots == 8);
}
