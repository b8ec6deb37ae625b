// Drawings of small schedules of all families, as they are run: what a change to a family changes can be read here.
#include <fmt/format.h>

#include <fstream>
#include <sstream>

#include "schedule/fuse.h"
#include "schedule/print.h"
#include "test/catch.h"
#include "test/topo/shapes.h"

using namespace gyre;
using namespace gyre::topo;

TEST_CASE("the families' schedules for 4 ranks are those that were drawn") {
  std::ifstream file(GYRE_SOURCE_DIR "/test/golden/families_4.txt");
  std::stringstream golden;
  golden << file.rdbuf();
  std::string drawn;
  for (const Family& family : families()) {
    for (const Collective collective : all_collectives()) {
      const Shape shape{collective, 4, 1, 0, test::looks_at_grid(family) ? std::vector{2, 2} : std::vector<int>()};
      if (!refusal(family, shape).empty()) continue;
      drawn += fmt::format("{}: {}\n{}\n", family.name, text(shape), print(schedule::fuse(*make(family.name, shape))));
    }
  }
  if (drawn != golden.str()) std::ofstream("families_4.txt") << drawn;
  INFO("what was drawn is in families_4.txt");
  CHECK(drawn == golden.str());
}
