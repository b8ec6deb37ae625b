#include "topo/algorithms.h"

#include "schedule/fuse.h"
#include "test/catch.h"
#include "test/topo/shapes.h"
#include "test/topo/walk.h"

using namespace gyre;
using namespace gyre::topo;

namespace {

/// What NCCL says that an output chunk holds: chunk `chunk` of the input of one rank, or of all.
test::Value meaning(const Shape& shape, uint32_t chunks, Rank rank, uint32_t output_chunk) {
  const auto own = static_cast<uint32_t>(rank);
  std::vector<Rank> everybody;
  for (Rank r = 0; r < shape.ranks; ++r) everybody.push_back(r);
  switch (shape.collective) {
    case Collective::all_reduce:
    case Collective::reduce:
      return {output_chunk, everybody};
    case Collective::reduce_scatter:
      return {own * chunks + output_chunk, everybody};
    case Collective::all_gather:
    case Collective::gather:
      return {output_chunk % chunks, {static_cast<Rank>(output_chunk / chunks)}};
    case Collective::broadcast:
      return {output_chunk, {shape.root}};
    case Collective::scatter:
      return {own * chunks + output_chunk, {shape.root}};
    case Collective::all_to_all:
      return {own * chunks + output_chunk % chunks, {static_cast<Rank>(output_chunk / chunks)}};
  }
  return {};
}

bool computes(const schedule::Schedule& schedule, const Shape& shape) {
  const test::Walk walk(schedule);
  for (Rank rank = 0; rank < shape.ranks; ++rank) {
    const bool has_output = (shape.collective != Collective::reduce && shape.collective != Collective::gather) || rank == shape.root;
    for (uint32_t chunk = 0; chunk < schedule.layout().output_chunks(); ++chunk) {
      test::Value value = walk.output(rank, chunk);
      std::sort(value.ranks.begin(), value.ranks.end());
      if (value != (has_output ? meaning(shape, schedule.chunks, rank, chunk) : test::Value())) return false;
    }
  }
  return walk.ended;
}

std::string refusal_of(std::string_view family, const Shape& shape) {
  const auto made = make(family, shape);
  return made ? "" : made.error().what;
}

}  // namespace

TEST_CASE("families are found by their names, others are not") {
  std::vector<std::string_view> names;
  for (const Family& family : families()) {
    names.push_back(family.name);
    CHECK(family_named(family.name) == &family);
    CHECK_FALSE(family.sentence.empty());
  }
  CHECK(names == std::vector<std::string_view>{"naive", "ring", "tree", "double_tree", "halving_doubling", "bucket", "hierarchical",
                                               "leaders", "one_shot", "two_shot", "pat", "chained_tree"});
  CHECK(family_named("auto") == nullptr);
  CHECK(family_named("") == nullptr);
}

TEST_CASE("every schedule computes its collective", "[long]") {
  for (int ranks = 1; ranks <= 20; ++ranks) {
    test::each_shape(ranks, [&](const Family& family, Shape shape) {
      shape.channels = 1 + static_cast<uint32_t>(ranks) % 3;
      INFO(family.name << ": " << text(shape));
      CHECK(computes(*make(family.name, shape), shape));
      CHECK(computes(schedule::fuse(*make(family.name, shape)), shape));
    });
  }
}

TEST_CASE("a schedule has the shape that was asked for") {
  for (const int ranks : {1, 2, 5, 12}) {
    test::each_shape(ranks, [&](const Family& family, Shape shape) {
      for (shape.channels = 1; shape.channels <= 4; ++shape.channels) {
        const auto schedule = *make(family.name, shape);
        INFO(family.name << ": " << text(shape));
        CHECK(schedule.family == family.name);
        CHECK(schedule.collective == shape.collective);
        CHECK(schedule.ranks == ranks);
        CHECK(schedule.root == shape.root);
        CHECK(schedule.channels == family.channels * shape.channels);
        CHECK(schedule.chunks % schedule.channels == 0);
        CHECK(schedule.programs.size() == static_cast<size_t>(ranks) * schedule.channels * schedule.strands);
      }
    });
  }
}

TEST_CASE("a job of one rank copies and does nothing else") {
  test::each_shape(1, [&](const Family& family, Shape shape) {
    shape.channels = 2;
    const auto schedule = *make(family.name, shape);
    INFO(family.name << ": " << text(shape));
    for (const auto& program : schedule.programs) {
      CHECK(program.steps.size() == (program.strand == 0 ? 1 : 0));
      for (const auto& step : program.steps) CHECK(operation(step) == "c");
    }
  });
}

TEST_CASE("what a family does not have is refused in words") {
  const Shape eight{Collective::all_reduce, 8, 1, 0, {}};
  CHECK(refusal_of("pat", eight) == "pat has no all_reduce for 8 ranks: only reduce_scatter and all_gather");
  CHECK(refusal_of("tree", {Collective::all_gather, 8, 1, 0, {}}) ==
        "tree has no all_gather for 8 ranks: only all_reduce, broadcast and reduce");
  for (const std::string name : {"hierarchical", "leaders", "chained_tree"}) {
    CHECK(refusal_of(name, eight) == name + " has no all_reduce for 8 ranks: needs a grid {ranks of a node, nodes}");
    CHECK(refusal_of(name, {Collective::all_reduce, 8, 1, 0, {2, 2, 2}}).find("needs a grid") != std::string::npos);
    CHECK(refusal_of(name, {Collective::all_reduce, 8, 1, 0, {4, 2}}) == "");
    CHECK(refusal_of(name, {Collective::all_reduce, 1, 1, 0, {}}) == "");
  }
  CHECK(refusal_of("bucket", {Collective::all_reduce, 8, 1, 0, {3, 3}}) ==
        "bucket has no all_reduce for 8 ranks (3x3): a grid of 3x3 for 8 ranks");
  CHECK(refusal_of("ring", {Collective::broadcast, 4, 1, 4, {}}) == "ring has no broadcast for 4 ranks, root 4: root 4 of 4 ranks");
  CHECK(refusal_of("ring", {Collective::all_reduce, 0, 1, 0, {}}) != "");
  CHECK(refusal_of("ring", {Collective::all_reduce, 4, 65, 0, {}}) != "");
  CHECK(refusal_of("rings", eight).find("did you mean ring?") != std::string::npos);
}

TEST_CASE("prime factors and squares multiply to the number of ranks") {
  CHECK(prime_factors(1).empty());
  CHECK(prime_factors(60) == std::vector<int>{2, 2, 3, 5});
  CHECK(most_square(1).empty());
  CHECK(most_square(7) == std::vector<int>{7});
  CHECK(most_square(12) == std::vector<int>{4, 3});
  CHECK(most_square(36) == std::vector<int>{6, 6});
  for (int ranks = 1; ranks <= 1000; ++ranks) {
    for (const auto& extents : {prime_factors(ranks), most_square(ranks)}) {
      int product = 1;
      for (const int extent : extents) product *= extent;
      CHECK(product == ranks);
    }
  }
}
