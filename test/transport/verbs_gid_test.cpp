// Tables of GIDs as ports of real machines show them, in an invented sysfs.
#include "transport/verbs/gid.h"

#include <fstream>

#include "test/catch.h"

using namespace gyre::transport::verbs;

namespace {

constexpr const char* nothing = "0000:0000:0000:0000:0000:0000:0000:0000";
constexpr const char* link_local = "fe80:0000:0000:0000:0a00:27ff:fe00:0001";
constexpr const char* v4 = "0000:0000:0000:0000:0000:ffff:0a4d:0001";
constexpr const char* v6 = "2001:0db8:0000:0000:0000:0000:0000:0001";

struct Sysfs {
  explicit Sysfs(const std::vector<std::pair<std::string, std::string>>& table)
      : root(std::filesystem::temp_directory_path() / "gyre-gids") {
    std::filesystem::remove_all(root);
    const auto port = root / "class/infiniband/mlx5_0/ports/1";
    std::filesystem::create_directories(port / "gids");
    std::filesystem::create_directories(port / "gid_attrs/types");
    for (size_t i = 0; i < table.size(); ++i) {
      std::ofstream(port / "gids" / std::to_string(i)) << table[i].first << '\n';
      if (!table[i].second.empty()) std::ofstream(port / "gid_attrs/types" / std::to_string(i)) << table[i].second << '\n';
    }
  }
  ~Sysfs() { std::filesystem::remove_all(root); }
  std::vector<Gid> gids() const { return read_gids(root, "mlx5_0", 1); }
  std::filesystem::path root;
};

// Version 1 before version 2, as Mellanox's driver lists them; an entry that is empty.
const std::vector<std::pair<std::string, std::string>> usual{
    {link_local, "IB/RoCE v1"}, {link_local, "RoCE v2"}, {v6, "IB/RoCE v1"}, {v6, "RoCE v2"},
    {v4, "IB/RoCE v1"},         {v4, "RoCE v2"},         {nothing, ""}};

int chosen(const std::vector<std::pair<std::string, std::string>>& table, const GidFilter& filter = {}) {
  const auto gid = choose_gid(Sysfs(table).gids(), filter);
  return gid ? gid->index : -1;
}

std::string why_not(const GidFilter& filter) { return choose_gid(Sysfs(usual).gids(), filter).error().what; }

}  // namespace

TEST_CASE("RoCE v2 over IPv4 comes before IPv6, and a link-local address is the last") {
  CHECK(chosen(usual) == 5);
  CHECK(chosen({usual[0], usual[1], usual[2], usual[3]}) == 3);
  CHECK(chosen({usual[0], usual[1]}) == 1);
  CHECK(chosen({usual[0], usual[2]}) == -1);
}

TEST_CASE("NCCL's variables choose among the addresses") {
  CHECK(chosen(usual, {.index = "0"}) == 0);
  CHECK(chosen(usual, {.index = "-1"}) == 5);
  CHECK(chosen(usual, {.version = "1"}) == 4);
  CHECK(chosen(usual, {.family = "AF_INET6"}) == 3);
  CHECK(chosen(usual, {.range = "10.77.0.0/16"}) == 5);
  CHECK(chosen(usual, {.range = "2001:db8::/32"}) == 3);
  CHECK(chosen(usual, {.version = "1", .family = "AF_INET6", .range = "fe80::/10"}) == 0);
  CHECK(chosen(usual, {.range = "0.0.0.0/0"}) == 5);
}

TEST_CASE("what leaves no address is named, with what there is") {
  const std::string all =
      "it has 0: fe80::a00:27ff:fe00:1 (RoCE v1), 1: fe80::a00:27ff:fe00:1 (RoCE v2), 2: 2001:db8::1 (RoCE v1), "
      "3: 2001:db8::1 (RoCE v2), 4: 10.77.0.1 (RoCE v1), 5: 10.77.0.1 (RoCE v2)";
  CHECK(why_not({.range = "10.78.0.0/16"}) == "no address of the port fits NCCL_IB_ADDR_RANGE=10.78.0.0/16; " + all);
  CHECK(why_not({.index = "6"}) == "no address of the port fits NCCL_IB_GID_INDEX=6; " + all);
  CHECK(choose_gid({}, {}).error().what == "no address of the port fits RoCE v2; it has none");
}

TEST_CASE("variables that NCCL would not take either are errors") {
  CHECK(why_not({.index = "one"}) == "NCCL_IB_GID_INDEX=one is not a number, or -1");
  CHECK(why_not({.version = "3"}) == "NCCL_IB_ROCE_VERSION_NUM=3 is not 1 or 2");
  CHECK(why_not({.family = "AF_UNIX"}) == "NCCL_IB_ADDR_FAMILY=AF_UNIX is not AF_INET or AF_INET6");
  for (const char* range : {"10.0.0.0", "10.0.0.0/33", "x/8", "::/129", "/"})
    CHECK(why_not({.range = range}).find("NCCL_IB_ADDR_RANGE=") == 0);
}
