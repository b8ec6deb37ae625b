#include "topo/select.h"

#include <cstdint>

#include "test/catch.h"
#include "topo/algorithms.h"

using namespace gyre::topo;

TEST_CASE("what is chosen is a family") {
  for (int ranks = 1; ranks <= 64; ++ranks) {
    for (size_t bytes = 0; bytes <= size_t{1} << 40; bytes = bytes == 0 ? 1 : bytes * 2)
      CHECK(family_named(choose(bytes, ranks)) != nullptr);
  }
}

TEST_CASE("one rank, and large buffers, take the ring") {
  CHECK(choose(0, 1) == "ring");
  for (int ranks = 2; ranks <= 64; ++ranks) CHECK(choose(size_t{64} << 20, ranks) == "ring");
}

TEST_CASE("small buffers take one hop, the smaller the more ranks there are") {
  CHECK(choose(0, 64) == "one_shot");
  size_t most_before = SIZE_MAX;
  for (int ranks = 2; ranks <= 64; ++ranks) {
    size_t most = 0;
    while (choose(most + 1, ranks) == "one_shot") ++most;
    INFO(ranks << " ranks: up to " << most << " bytes");
    CHECK(most >= 8);
    CHECK(most <= most_before);
    most_before = most;
  }
}

TEST_CASE("a larger buffer never goes back to the family of small ones") {
  for (int ranks = 2; ranks <= 64; ++ranks) {
    bool large = false;
    for (size_t bytes = 0; bytes <= 1 << 20; bytes += 61) {
      const bool one_shot = choose(bytes, ranks) == "one_shot";
      CHECK_FALSE((large && one_shot));
      large = large || !one_shot;
    }
  }
}
