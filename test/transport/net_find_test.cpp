// The devices of the machine this runs on, for the UCX_TLS that it runs with: whatever there is, it must be consistent, and nothing stays
// open.
#include <sys/types.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <set>

#include "test/catch.h"
#include "transport/net_device.h"

using namespace gyre;
using namespace gyre::transport;

namespace {

std::ptrdiff_t entries_in(const char* folder) {
  return std::ranges::distance(std::filesystem::directory_iterator(folder), std::filesystem::directory_iterator());
}

std::vector<NetDevice> live_devices(const NetFilter& filter = {}) {
  auto found = find_net_devices(filter);
  INFO((found ? "" : found.error().what));
  REQUIRE(found);
  return *found;
}

/// Sets a variable of the environment for a while.
class Variable {
 public:
  Variable(const char* name, const char* value) : name_(name) {
    if (const char* old = std::getenv(name)) old_ = old;
    setenv(name, value, 1);
  }
  ~Variable() { old_.empty() ? unsetenv(name_) : setenv(name_, old_.c_str(), 1); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  const char* name_;
  std::string old_;
};

}  // namespace

TEST_CASE("this machine has devices, each complete") {
  std::set<std::string> names;
  for (const auto& d : live_devices()) {
    INFO(d.name);
    CHECK(names.insert(d.name).second);
    CHECK_FALSE(d.interface.empty());
    CHECK(d.address.length > 0);
    CHECK(d.guid != 0);
    CHECK(d.port >= 1);
    CHECK(d.mbit_per_s >= 0);
    CHECK(d.latency_us > 0);
    CHECK((d.pci_path.empty() || d.pci_path.starts_with("/sys/devices/")));
  }
}

TEST_CASE("loopback is found when it is named") {
  NetFilter filter;
  filter.socket_ifname = "=lo";
  filter.ib_disable = "1";
  const auto found = live_devices(filter);
  REQUIRE(found.size() == 1);
  CHECK(found[0].name == "lo");
  CHECK(found[0].loopback);
  CHECK(text(found[0].address) == "127.0.0.1");
}

TEST_CASE("looking for devices leaves no descriptor and no thread") {
  (void)live_devices();  // what UCX keeps for the life of the process
  const auto descriptors = entries_in("/proc/self/fd");
  const auto threads = entries_in("/proc/self/task");
  const auto first = live_devices();
  const auto second = live_devices();
  CHECK(entries_in("/proc/self/fd") == descriptors);
  CHECK(entries_in("/proc/self/task") == threads);
  CHECK(first.size() == second.size());
  CHECK(first[0].guid == second[0].guid);
}

TEST_CASE("the user's UCX_NET_DEVICES leaves out what it does not name, and the error says so") {
  const Variable transports("UCX_TLS", "tcp,self");
  {
    const Variable lo("UCX_NET_DEVICES", "lo");
    const auto found = live_devices();
    REQUIRE(found.size() == 1);
    CHECK(found[0].name == "lo");
  }
  const Variable none("UCX_NET_DEVICES", "nosuch0");
  const auto found = find_net_devices({});
  REQUIRE_FALSE(found);
  CHECK(found.error().what.find("lo (UCX_NET_DEVICES=nosuch0)") != std::string::npos);
}
