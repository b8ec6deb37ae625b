#include "engine/network.h"

#include "engine/choice.h"
#include "test/catch.h"

using namespace gyre;
using namespace gyre::engine;

namespace {

Facts at(const std::string& host, std::vector<std::string> backends) {
  Facts facts;
  facts.host = host;
  facts.backends = std::move(backends);
  facts.processors = {3};
  facts.slots_by_default = true;
  return facts;
}

Config named(const std::string& transport) {
  Config config;
  REQUIRE(config.set("GYRE_TRANSPORT", transport, "test"));
  return config;
}

}  // namespace

TEST_CASE("all is over tcp where it is named, or nothing else can be taken") {
  const Config any = named("auto");
  const std::vector<std::string> plain{"shm", "tcp"}, with_ucx{"shm", "ucx", "tcp"};
  CHECK(all_over_tcp(named("tcp"), {at("a", plain), at("a", plain)}));
  CHECK_FALSE(all_over_tcp(named("ucx"), {at("a", with_ucx), at("b", with_ucx)}));
  CHECK(all_over_tcp(any, {at("a", plain), at("b", plain), at("c", plain)}));
  CHECK_FALSE(all_over_tcp(any, {at("a", plain), at("b", plain), at("b", plain)}));
  CHECK_FALSE(all_over_tcp(any, {at("a", with_ucx), at("b", with_ucx)}));
  CHECK(all_over_tcp(any, {at("a", plain), at("b", with_ucx)}));
  CHECK_FALSE(all_over_tcp(any, {at("a", {"verbs", "tcp"}), at("b", {"verbs", "tcp"})}));
  CHECK(all_over_tcp(any, {at("a", {"verbs", "tcp"}), at("b", {"tcp"})}));
  CHECK_FALSE(all_over_tcp(any, {at("a", plain)}));
}

TEST_CASE("hosts are joined by verbs where all ranks have it, and there are several") {
  const std::vector<std::string> plain{"shm", "tcp"}, with_verbs{"shm", "verbs", "tcp"};
  CHECK(hosts_by_verbs(named("auto"), {at("a", with_verbs), at("a", with_verbs), at("b", with_verbs)}));
  CHECK_FALSE(hosts_by_verbs(named("auto"), {at("a", with_verbs), at("a", plain), at("b", with_verbs)}));
  CHECK_FALSE(hosts_by_verbs(named("auto"), {at("a", with_verbs), at("a", with_verbs)}));
  CHECK(hosts_by_verbs(named("verbs"), {at("a", with_verbs), at("b", with_verbs)}));
  CHECK_FALSE(hosts_by_verbs(named("tcp"), {at("a", with_verbs), at("b", with_verbs)}));
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
