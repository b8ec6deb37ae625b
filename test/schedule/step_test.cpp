#include "schedule/step.h"

#include "test/catch.h"

using namespace gyre::schedule;

namespace {

constexpr Chunks piece{Buffer::input, 0, 1};

std::string name_of(uint32_t from, bool src, bool dst, uint32_t to) {
  return operation({{0, from}, src ? piece : Chunks{}, dst ? piece : Chunks{}, {0, to}});
}

}  // namespace

TEST_CASE("an operation is named after its operands") {
  CHECK(name_of(0, true, true, 0) == "c");
  CHECK(name_of(0, true, false, 1) == "s");
  CHECK(name_of(0, true, true, 1) == "cs");
  CHECK(name_of(1, false, true, 0) == "r");
  CHECK(name_of(1, false, false, 1) == "rs");
  CHECK(name_of(1, false, true, 1) == "rcs");
  CHECK(name_of(1, true, true, 0) == "rrc");
  CHECK(name_of(1, true, false, 1) == "rrs");
  CHECK(name_of(1, true, true, 1) == "rrcs");
}

TEST_CASE("several peers do not change the name, but several arrivals are reduced") {
  CHECK(name_of(0, true, false, 3) == "s");
  CHECK(name_of(1, false, true, 3) == "rcs");
  CHECK(name_of(2, false, true, 0) == "rrc");
  CHECK(name_of(2, false, false, 1) == "rrs");
  CHECK(name_of(2, true, true, 2) == "rrcs");
}

TEST_CASE("operands that do nothing have no name to hide behind") {
  CHECK(name_of(0, false, false, 0).empty());
  CHECK(name_of(1, false, false, 0) == "r");
  CHECK(name_of(0, true, false, 0).empty());
}

TEST_CASE("a step reduces when it has more than one source") {
  CHECK_FALSE(Step{{0, 1}, {}, piece, {}}.reduces());
  CHECK(Step{{0, 1}, piece, piece, {}}.reduces());
  CHECK(Step{{0, 2}, {}, piece, {}}.reduces());
  CHECK(Step{{0, 2}, piece, piece, {}}.sources() == 3);
}

TEST_CASE("the flow is named by what is written, else by what is read") {
  const Chunks other{Buffer::output, 3, 2, 4};
  CHECK(Step{{}, piece, other, {}}.flow() == other);
  CHECK(Step{{}, piece, {}, {}}.flow() == piece);
}

TEST_CASE("chunks are counted by their stride") {
  const Chunks chunks{Buffer::output, 3, 3, 4};
  CHECK(chunks[0] == 3);
  CHECK(chunks[2] == 11);
  CHECK_FALSE(Chunks{}.present());
}
