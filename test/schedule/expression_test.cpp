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

TEST_CASE("different chunks, and more parts than ranks, are not reduced") {
  Expressions e(2);
  const auto a = e.leaf(0, 0);
  const auto b = e.leaf(1, 0);
  CHECK(e.reduce(a, e.leaf(1, 1), 0) == Expressions::none);
  CHECK(e.reduce(e.reduce(a, b, 0), b, 0) == Expressions::none);
}

TEST_CASE("a part that is there twice is found, and the reduction that did it") {
  Expressions e(5);
  const auto a = e.leaf(0, 0);
  const auto b = e.leaf(1, 0);
  const auto c = e.leaf(2, 0);
  const auto ab = e.reduce(a, b, 0, 7);
  const auto twice = e.reduce(ab, e.reduce(b, c, 0, 8), 0, 9);
  const auto all = e.reduce(twice, e.leaf(3, 0), 0, 10);
  CHECK(e.complete(all));  // as far as numbers go
  CHECK(e.doubled(all) == twice);
  CHECK(e.step(twice) == 9);
  CHECK(e.doubled(ab) == Expressions::none);
  CHECK(e.doubled(e.reduce(c, e.reduce(a, a, 0), 0)) == e.reduce(a, a, 0));
}

TEST_CASE("an expression knows its chunk and the first part that is missing") {
  Expressions e(3);
  const auto ab = e.reduce(e.leaf(0, 4), e.leaf(1, 4), 0);
  CHECK(e.chunk(ab) == 4);
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

TEST_CASE("an expression reads as it associates") {
  Expressions e(3);
  const auto bc = e.reduce(e.leaf(1, 0), e.leaf(2, 0), 0);
  CHECK(e.text(e.reduce(bc, e.leaf(0, 0), 0)) == "((r1+r2)+r0)");
  CHECK(e.text(Expressions::none) == "nothing");
}
