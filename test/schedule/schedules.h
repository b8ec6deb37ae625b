// Every schedule that the families generate, for tests that are about all of them.
#pragma once
#include <string>

#include "test/catch.h"
#include "test/topo/shapes.h"
#include "topo/algorithms.h"

namespace gyre::test {

/// Calls f(schedule), unfused, for every family, collective, root and grid that there is for so many ranks.
template <class F>
void each_schedule(int ranks, uint32_t channels, F&& f) {
  each_shape(ranks, [&](const topo::Family& family, topo::Shape shape) {
    shape.channels = channels;
    INFO(family.name << ": " << topo::text(shape));
    auto made = topo::make(family.name, shape);
    REQUIRE(made);
    f(*std::move(made));
  });
}

}  // namespace gyre::test
