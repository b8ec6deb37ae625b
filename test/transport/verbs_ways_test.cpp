// By which ports a worker goes.
#include <fmt/format.h>

#include "test/catch.h"
#include "transport/ports.h"
#include "transport/verbs.h"

using namespace gyre;
using namespace gyre::transport;

namespace {

std::string ports(const std::vector<std::string>& devices, const std::vector<std::string>& named) {
  std::vector<NetDevice> all(devices.size());
  for (size_t i = 0; i < devices.size(); ++i) all[i].name = devices[i], all[i].port = split_port(devices[i]).second;
  std::string out;
  for (const VerbsPort& port : verbs_way(narrowed(all, named)).ports) out += fmt::format("{}:{} ", port.device, port.number);
  return out;
}

}  // namespace

TEST_CASE("of several ports those that are named are gone by, in the order of names, of others none") {
  const std::vector<std::string> all{"mlx5_10:1", "mlx5_2:2", "mlx5_0:1", "mlx5_2:1"};
  CHECK(ports(all, {}) == "mlx5_0:1 mlx5_2:1 mlx5_2:2 mlx5_10:1 ");
  CHECK(ports(all, {"mlx5_10:1", "mlx5_2:1", "eth0", "mlx5_7:1"}) == "mlx5_2:1 mlx5_10:1 ");
}

TEST_CASE("where none of those that are named can be used, or may be by NCCL's filter, all are") {
  CHECK(ports({"mlx5_8:1", "mlx5_9:1"}, {"mlx5_0:1", "mlx5_1:1"}) == "mlx5_8:1 mlx5_9:1 ");
  CHECK(ports({}, {"mlx5_0:1"}).empty());
}

TEST_CASE("of more than eight each NIC has one, before any has two, also where a NIC shows its ports as devices") {
  std::vector<std::string> all;
  for (const int port : {1, 2}) {
    for (int nic = 0; nic < 8; ++nic) all.push_back(fmt::format("mlx5_{}:{}", nic, port));
  }
  CHECK(ports(all, {}) == "mlx5_0:1 mlx5_1:1 mlx5_2:1 mlx5_3:1 mlx5_4:1 mlx5_5:1 mlx5_6:1 mlx5_7:1 ");
  std::vector<NetDevice> functions(16);
  for (int i = 0; i < 16; ++i) functions[static_cast<size_t>(i)].name = fmt::format("mlx5_{}:1", i);
  for (size_t i = 1; i < 16; i += 2) functions[i].port = 2;  // as the second of a chip is told
  std::string taken;
  for (const NetDevice& port : narrowed(functions, {})) taken += port.name + " ";
  CHECK(taken == "mlx5_0:1 mlx5_2:1 mlx5_4:1 mlx5_6:1 mlx5_8:1 mlx5_10:1 mlx5_12:1 mlx5_14:1 ");
}

TEST_CASE("at most eight, of those that are named") {
  std::vector<std::string> all, late;
  for (int i = 0; i < 20; ++i) (i < 10 ? all : late).push_back(fmt::format("mlx5_{}:1", i));
  all.insert(all.end(), late.begin(), late.end());
  CHECK(ports(all, late) == "mlx5_10:1 mlx5_11:1 mlx5_12:1 mlx5_13:1 mlx5_14:1 mlx5_15:1 mlx5_16:1 mlx5_17:1 ");
}

TEST_CASE("the port that is named first is where short messages begin, wherever it stands among those that are gone by") {
  std::vector<NetDevice> all(3);
  for (size_t i = 0; i < all.size(); ++i) all[i].name = fmt::format("mlx5_{}:1", i);
  for (uint32_t own = 0; own < 3; ++own) CHECK(verbs_way(all, all[own].name).first == own);
  CHECK(verbs_way(all, "mlx5_7:1").first == 0);
  CHECK(verbs_way(all).first == 0);
}
