#include "schedule/canonical.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "schedule/fuse.h"
#include "schedule/verify.h"
#include "test/catch.h"
#include "test/schedule/schedules.h"
#include "test/schedule/script.h"

using namespace gyre;
using namespace gyre::schedule;
using test::none;
using test::Script;

namespace {

std::string text(uint32_t parts) {
  const auto leaf = [](uint32_t part) { return std::to_string(part); };
  const auto op = [](const std::string& left, const std::string& right) { return "(" + left + "+" + right + ")"; };
  return reduce_canonically(CanonicalTree(parts), 0, parts, leaf, op);
}
int depth(uint32_t parts) {
  return reduce_canonically(
      CanonicalTree(parts), 0, parts, [](uint32_t) { return 0; }, [](int left, int right) { return std::max(left, right) + 1; });
}

constexpr Chunks canonical_input(uint32_t chunk) { return {Buffer::input, chunk, 1, 1}; }
constexpr Chunks canonical_output(uint32_t chunk) { return {Buffer::output, chunk, 1, 1}; }
constexpr Chunks canonical_scratch(uint32_t chunk) { return {Buffer::scratch, chunk, 1, 1}; }

/// Why it is not ordered; empty: it is.
std::string canonical_fault(const Schedule& schedule) {
  const auto proof = verify(schedule, {8, 1, Mode::buffered, false, true});
  return proof ? "" : proof.error().what.substr(proof.error().what.find("): ") + 3);
}
/// A reduce to rank 0 of four ranks.
Script to_first(std::initializer_list<Rank> from, uint32_t place, Association association) {
  Script s(Collective::reduce, 4, 1, 1);
  for (const Rank r : {1, 2, 3}) s.step(r, {}, canonical_input(0), none, {0});
  return s.step(0, from, canonical_input(0), canonical_output(0), {}, place).reducing(0, association);
}

}  // namespace

TEST_CASE("the canonical tree is the butterfly, into which surplus ranks fold first") {
  CHECK(text(1) == "0");
  CHECK(text(2) == "(0+1)");
  CHECK(text(3) == "((0+1)+2)");
  CHECK(text(4) == "((0+1)+(2+3))");
  CHECK(text(5) == "(((0+1)+2)+(3+4))");
  CHECK(text(6) == "(((0+1)+(2+3))+(4+5))");
  CHECK(text(7) == "(((0+1)+(2+3))+((4+5)+6))");
  CHECK(text(8) == "(((0+1)+(2+3))+((4+5)+(6+7)))");
}

TEST_CASE("the canonical tree is no deeper than it must be") {
  for (uint32_t parts = 1; parts <= 300; ++parts) CHECK(static_cast<uint32_t>(depth(parts)) == std::bit_width(parts - 1));
}

TEST_CASE("the tree of groups of a power of two is that of the groups, over the tree of each") {
  for (uint32_t groups = 1; groups <= 20; ++groups) {
    for (const uint32_t size : {1U, 2U, 4U, 8U}) {
      const auto part = [](uint32_t p) { return std::to_string(p); };
      const auto op = [](const std::string& left, const std::string& right) { return "(" + left + "+" + right + ")"; };
      const CanonicalTree all(groups * size);
      const auto group = [&](uint32_t g) { return reduce_canonically(all, g * size, (g + 1) * size, part, op); };
      CHECK(reduce_canonically(CanonicalTree(groups), 0, groups, group, op) == text(groups * size));
    }
  }
}

TEST_CASE("the tree has the sums that it is made of and no others") {
  for (uint32_t parts = 1; parts <= 40; ++parts) {
    const CanonicalTree tree(parts);
    struct Range {
      uint32_t first, end;
    };
    uint32_t made = 0;
    const auto op = [&](Range left, Range right) {
      CHECK(left.end == right.first);
      CHECK(tree.has(left.first, left.end, right.end));
      ++made;
      return Range{left.first, right.end};
    };
    reduce_canonically(
        tree, 0, parts,
        [](uint32_t p) {
          return Range{p, p + 1};
        },
        op);
    uint32_t has = 0;
    for (uint32_t first = 0; first <= parts; ++first) {
      for (uint32_t middle = 0; middle <= parts + 1; ++middle) {
        for (uint32_t end = 0; end <= parts + 2; ++end) has += tree.has(first, middle, end) ? 1 : 0;
      }
    }
    CHECK(made == parts - 1);
    CHECK(has == made);
  }
}

TEST_CASE("a step of several sources reduces them in order or by the tree, and the proof tells these apart") {
  CHECK(canonical_fault(to_first({1, 2, 3}, 0, Association::tree)) == "");
  CHECK(canonical_fault(to_first({1, 2, 3}, 0, Association::in_order)) ==
        "rank 0 channel 0 step 0 reduces (r0+r1) with r2: not a sum of the canonical tree");
  CHECK(canonical_fault(to_first({1, 2, 3}, 1, Association::tree)) == "");  // (1+0) is the same as (0+1)
  CHECK(canonical_fault(to_first({2, 1, 3}, 0, Association::tree)) ==
        "rank 0 channel 0 step 0 reduces r0 with r2: not a sum of the canonical tree");
  const auto what = verify(to_first({2, 1, 3}, 0, Association::tree), {8, 1, Mode::buffered, false});
  CHECK(what);  // it is a reduce, though not an ordered one
}

TEST_CASE("what is not the whole may be wider, and is refused where it has no room") {
  Script s(Collective::all_reduce, 3, 1, 1);
  s.step(1, {}, canonical_input(0), none, {0}).step(0, {1}, canonical_input(0), canonical_output(0), {}, 0);
  s.step(2, {}, canonical_input(0), none, {0}).step(0, {2}, canonical_output(0), canonical_output(0), {1, 2}, 0);
  s.step(1, {0}, none, canonical_output(0), {}).step(2, {0}, none, canonical_output(0), {});
  CHECK(verify(s, {8, 1, Mode::buffered, false}));
  CHECK(canonical_fault(s) == "rank 0 channel 0 step 0 keeps what is not the whole in the output, which may be too small for it");

  Script own(Collective::reduce, 3, 1, 1);
  own.step(1, {}, canonical_input(0), none, {0}).step(2, {}, canonical_input(0), none, {0});
  own.step(0, {}, canonical_input(0), canonical_scratch(0), {})
      .step(0, {1}, canonical_scratch(0), canonical_scratch(0), {}, 0)
      .step(0, {2}, canonical_scratch(0), canonical_output(0), {}, 0);
  CHECK(canonical_fault(own) == "rank 0 channel 0 step 1 keeps a sum where it reads a part of it, which may be smaller");

  Script mixed(Collective::reduce, 4, 1, 1);
  mixed.step(3, {}, canonical_input(0), none, {2})
      .step(2, {3}, canonical_input(0), none, {0}, 0)
      .step(1, {}, canonical_input(0), none, {0});
  mixed.step(0, {1, 2}, canonical_input(0), canonical_output(0), {}, 0);
  CHECK(canonical_fault(mixed) == "rank 0 channel 0 step 0 receives parts and partial sums at once, whose messages differ in size");
}

TEST_CASE("the proof says of which form a step's sources and its value are") {
  Script s(Collective::reduce, 4, 1, 1);
  s.step(3, {}, canonical_input(0), none, {2}).step(2, {3}, canonical_input(0), none, {0}, 0).step(1, {}, canonical_input(0), none, {0});
  s.step(0, {1}, canonical_input(0), canonical_scratch(0), {}, 0).step(0, {2}, canonical_scratch(0), canonical_output(0), {}, 0);
  CHECK(canonical_fault(s) == "");
  const Proof proof = *verify(s, {8, 1, Mode::buffered, false, true});
  const auto forms = [&](size_t program, size_t step) {
    const Fact& fact = proof.facts[program][step];
    return std::array{fact.arrived, fact.local, fact.value};
  };
  using enum Form;
  CHECK(forms(0, 0) == std::array{part, part, partial});
  CHECK(forms(0, 1) == std::array{partial, partial, whole});
  CHECK(forms(2, 0) == std::array{part, part, partial});
  CHECK(forms(3, 0)[2] == part);
  CHECK(proof.sends_partial);
  CHECK_FALSE(verify(to_first({1, 2, 3}, 0, Association::tree), {8, 1, Mode::buffered, false, true})->sends_partial);
}

TEST_CASE("where nothing is reduced, every schedule is ordered") {
  for (const int ranks : {1, 2, 3, 5}) {
    test::each_schedule(ranks, 1, [](const Schedule& made) {
      if (!reduces(made.collective)) CHECK(canonical_fault(fuse(made)) == "");
    });
  }
}
