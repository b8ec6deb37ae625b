#include "schedule/expression.h"

#include "test/catch.h"

using namespace gyre;
using gyre::schedule::Expressions;

TEST_CASE("equal reductions are the same expression, in another order they are not") {
  Expressions e(3);
  const auto a = e.leaf(0, 7);
  const auto b = e.leaf(1, 7);
  const auto c = e.leaf(2, 7);
  CHECK(e.reduce(a, b, 0) == e.reduce(a, b, 1));
  CHECK(e.reduce(a, b, 0) != e.reduce(b, a, 0));
  CHECK(e.reduce(e.reduce(a, b, 0), c, 0) != e.reduce(a, e.reduce(b, c, 0), 0));
}

TEST_CASE("parts of different chunks, and a part twice, are not reduced") {
  Expressions e(3);
  const auto a = e.leaf(0, 0);
  const auto b = e.leaf(1, 0);
  CHECK(e.reduce(a, e.leaf(1, 1), 0) == Expressions::none);
  CHECK(e.reduce(a, a, 0) == Expressions::none);
  CHECK(e.reduce(e.reduce(a, b, 0), b, 0) == Expressions::none);
}

TEST_CASE("an expression knows its chunk, its parts and the first that is missing") {
  Expressions e(3);
  const auto ab = e.reduce(e.leaf(0, 4), e.leaf(1, 4), 0);
  CHECK(e.chunk(ab) == 4);
  CHECK(e.has(ab, 0));
  CHECK(e.has(ab, 1));
  CHECK_FALSE(e.has(ab, 2));
  CHECK(e.first_missing(ab) == 2);
  CHECK_FALSE(e.complete(ab));
  const auto all = e.reduce(ab, e.leaf(2, 4), 1);
  CHECK(e.complete(all));
  CHECK(e.first_missing(all) == 3);
}

TEST_CASE("the only rank's own part is complete") {
  Expressions e(1);
  CHECK(e.complete(e.leaf(0, 0)));
}

TEST_CASE("an expression is replicated once a second rank has made it") {
  Expressions e(2);
  const auto a = e.leaf(0, 0);
  const auto b = e.leaf(1, 0);
  const auto ab = e.reduce(a, b, 0);
  e.reduce(a, b, 0);
  CHECK_FALSE(e.replicated(ab));
  e.reduce(a, b, 1);
  CHECK(e.replicated(ab));
}

TEST_CASE("more ranks than a word has bits are told apart") {
  for (const int ranks : {63, 64, 65, 128, 130}) {
    INFO(ranks);
    Expressions e(ranks);
    auto sum = e.leaf(0, 0);
    for (Rank r = 1; r < ranks; ++r) {
      CHECK(e.first_missing(sum) == r);
      const auto part = e.leaf(r, 0);
      sum = e.reduce(sum, part, 0);
      REQUIRE(sum != Expressions::none);
      REQUIRE(e.reduce(sum, part, 0) == Expressions::none);
    }
    CHECK(e.complete(sum));
  }
}

TEST_CASE("an expression reads as it associates") {
  Expressions e(3);
  const auto bc = e.reduce(e.leaf(1, 0), e.leaf(2, 0), 0);
  CHECK(e.text(e.reduce(bc, e.leaf(0, 0), 0)) == "((r1+r2)+r0)");
  CHECK(e.text(Expressions::none) == "nothing");
}
