// What the table of algorithms says of each family: messages that stand one after the other, and bytes that a rank sends. M is a block,
// or all ranks' blocks where a rank has one for each.
#include <bit>

#include "schedule/fuse.h"
#include "test/catch.h"
#include "test/topo/shapes.h"
#include "test/topo/walk.h"

using namespace gyre;
using namespace gyre::topo;
using schedule::Buffer;
using schedule::fuse;
using schedule::Schedule;

namespace {

Schedule fused(std::string_view family, Collective collective, int ranks, std::vector<int> grid = {}, Rank root = 0,
               uint32_t channels = 1) {
  return fuse(*make(family, {collective, ranks, channels, root, std::move(grid)}));
}
int critical(const Schedule& schedule) { return test::Walk(schedule).critical; }

int floor_log2(int n) { return static_cast<int>(std::bit_width(static_cast<unsigned>(n))) - 1; }
int ceil_log2(int n) { return static_cast<int>(std::bit_width(static_cast<unsigned>(n - 1))); }

/// Whether every rank sends `blocks` blocks, of which M has `of`.
bool all_send(const Schedule& schedule, int blocks, int of) {
  const test::Walk walk(schedule);
  const uint32_t m = std::max(schedule.layout().input_chunks(), schedule.layout().output_chunks());
  for (Rank r = 0; r < schedule.ranks; ++r) {
    if (walk.sent_by(r) * static_cast<uint32_t>(of) != m * static_cast<uint32_t>(blocks)) return false;
  }
  return true;
}

constexpr Collective halves[] = {Collective::reduce_scatter, Collective::all_gather};

}  // namespace

TEST_CASE("the ring: 2(N-1) messages, 2M(N-1)/N sent, to the next rank only, or on odd channels to the one before") {
  for (int ranks = 2; ranks <= 17; ++ranks) {
    const Schedule ring = fused("ring", Collective::all_reduce, ranks, {}, 0, 2);
    CHECK(critical(ring) == 2 * (ranks - 1));
    CHECK(all_send(ring, 2 * (ranks - 1), ranks));
    for (const auto& message : test::Walk(ring).messages) {
      CHECK(message.to == (message.from + (message.channel == 0 ? 1 : ranks - 1)) % ranks);
      CHECK(message.chunks == 1);
    }
    for (const Collective half : halves) {
      CHECK(critical(fused("ring", half, ranks)) == ranks - 1);
      CHECK(all_send(fused("ring", half, ranks), ranks - 1, ranks));
    }
    for (const Collective chain : {Collective::broadcast, Collective::reduce}) {
      const Schedule schedule = fused("ring", chain, ranks, {}, ranks / 2);
      CHECK(critical(schedule) == ranks - 1);
      CHECK(test::Walk(schedule).messages.size() == static_cast<size_t>(ranks - 1));
    }
  }
}

TEST_CASE("the heap: floor(log2 N) hops each way, at most 2M down and M up from a rank") {
  for (int ranks = 2; ranks <= 64; ++ranks) {
    const Schedule all_reduce = fused("tree", Collective::all_reduce, ranks);
    CHECK(critical(all_reduce) == 2 * floor_log2(ranks));
    for (Rank r = 0; r < ranks; ++r) CHECK(test::Walk(all_reduce).sent_by(r) <= 3);
    for (const Collective way : {Collective::broadcast, Collective::reduce}) {
      CHECK(critical(fused("tree", way, ranks, {}, ranks / 3)) == floor_log2(ranks));
    }
  }
}

TEST_CASE("the double tree: at most 2 ceil(log2 N) hops, every rank inner in at most one tree") {
  for (int ranks = 2; ranks <= 64; ++ranks) {
    INFO(ranks << " ranks");
    CHECK(critical(fused("double_tree", Collective::all_reduce, ranks)) <= 2 * floor_log2(ranks));
    CHECK(critical(fused("double_tree", Collective::broadcast, ranks, {}, 1)) <= ceil_log2(ranks));
    CHECK(critical(fused("double_tree", Collective::reduce, ranks, {}, 1)) <= ceil_log2(ranks));
    for (const Collective down : {Collective::all_reduce, Collective::broadcast}) {
      const Schedule schedule = fused("double_tree", down, ranks, {}, ranks - 1, 2);
      for (uint32_t c = 0; c < 4; c += 2) {
        for (Rank r = 0; r < ranks; ++r) {
          int inner = 0;
          for (const uint32_t tree : {c, c + 1}) {
            uint32_t children = 0;
            for (uint32_t strand = 0; strand < schedule.strands; ++strand) {
              const bool downwards = strand + 1 == schedule.strands || schedule.program(r, tree, 1).steps.empty();
              for (const auto& step : schedule.program(r, tree, strand).steps) children += downwards ? step.to.count : 0;
            }
            CHECK(children <= 2);
            inner += children != 0 ? 1 : 0;
          }
          CHECK(inner <= (down == Collective::broadcast && r == schedule.root ? 2 : 1));
        }
      }
    }
  }
}

TEST_CASE("halving-doubling: 2 log2 N messages and 2M(N-1)/N sent, two more messages where surplus ranks are folded") {
  for (int ranks = 2; ranks <= 64; ++ranks) {
    INFO(ranks << " ranks");
    const bool power = std::has_single_bit(static_cast<unsigned>(ranks));
    const Schedule all_reduce = fused("halving_doubling", Collective::all_reduce, ranks);
    CHECK(critical(all_reduce) == 2 * floor_log2(ranks) + (power ? 0 : 2));
    if (power) CHECK(all_send(all_reduce, 2 * (ranks - 1), ranks));
    for (const Collective half : halves) {
      const Schedule schedule = fused("halving_doubling", half, ranks);
      CHECK(critical(schedule) == static_cast<int>(prime_factors(ranks).size()));
      CHECK(all_send(schedule, ranks - 1, ranks));
    }
  }
  CHECK(critical(fused("halving_doubling", Collective::all_reduce, 24, {2, 3, 4})) == 6);
  CHECK(all_send(fused("halving_doubling", Collective::all_reduce, 24, {2, 3, 4}), 2 * 23, 24));
}

TEST_CASE("bucket: 2(n-1) messages for each dimension of n ranks, and 2M(N-1)/N sent") {
  for (const int ranks : {2, 6, 12, 16, 18, 30}) {
    for (const auto& grid : test::grids(ranks)) {
      int hops = 0;
      for (const int extent : grid.empty() ? most_square(ranks) : grid) hops += extent - 1;
      CHECK(critical(fused("bucket", Collective::all_reduce, ranks, grid)) == 2 * hops);
      CHECK(all_send(fused("bucket", Collective::all_reduce, ranks, grid), 2 * (ranks - 1), ranks));
      for (const Collective half : halves) {
        CHECK(critical(fused("bucket", half, ranks, grid)) == hops);
        CHECK(all_send(fused("bucket", half, ranks, grid), ranks - 1, ranks));
      }
    }
  }
}

TEST_CASE("hierarchical: between nodes a rank sends 2(M/L)(K-1)/K, in all 2M(N-1)/N") {
  for (const auto& [local, nodes] : {std::pair{2, 2}, {4, 3}, {3, 4}, {8, 5}, {1, 4}, {4, 1}}) {
    const int ranks = local * nodes;
    const auto abroad = [l = local](const test::Sent& message) { return message.from / l != message.to / l; };
    const Schedule all_reduce = fused("hierarchical", Collective::all_reduce, ranks, {local, nodes});
    CHECK(all_send(all_reduce, 2 * (ranks - 1), ranks));
    CHECK(critical(all_reduce) == 2 * ((local > 1 ? 1 : 0) + nodes - 1));
    CHECK(test::Walk(all_reduce).sent(abroad) == static_cast<uint32_t>(2 * (nodes - 1) * ranks));
    for (const Collective half : halves) {
      CHECK(test::Walk(fused("hierarchical", half, ranks, {local, nodes})).sent(abroad) == static_cast<uint32_t>((nodes - 1) * ranks));
    }
  }
}

TEST_CASE("leaders: between nodes only they send, 2M(K-1)/K each") {
  for (const auto& [local, nodes] : {std::pair{2, 2}, {4, 3}, {3, 4}, {8, 5}, {1, 4}, {4, 1}}) {
    const Schedule all_reduce = fused("leaders", Collective::all_reduce, local * nodes, {local, nodes});
    const test::Walk walk(all_reduce);
    CHECK(all_reduce.chunks == static_cast<uint32_t>(nodes));
    CHECK(walk.critical <= 2 * nodes);
    for (Rank r = 0; r < local * nodes; ++r) {
      const auto abroad = [&, l = local](const test::Sent& m) { return m.from == r && m.from / l != m.to / l; };
      CHECK(walk.sent(abroad) == static_cast<uint32_t>(r % local == 0 ? 2 * (nodes - 1) : 0));
    }
    for (const Collective way : {Collective::broadcast, Collective::reduce}) {
      const Schedule schedule = fused("leaders", way, local * nodes, {local, nodes}, local * nodes - 1);
      CHECK(critical(schedule) <= nodes);
      const auto abroad = [l = local](const test::Sent& m) { return m.from / l != m.to / l; };
      CHECK(test::Walk(schedule).sent(abroad) == static_cast<uint32_t>(nodes - 1));
    }
  }
}

TEST_CASE("chained_tree: a node's bytes come and go once each way, or twice half of them; chains inside, two trees between") {
  for (const auto& [local, nodes] : {std::pair{2, 2}, {4, 3}, {3, 4}, {8, 5}, {1, 4}, {4, 1}, {2, 16}}) {
    const Schedule all_reduce = fused("chained_tree", Collective::all_reduce, local * nodes, {local, nodes});
    const test::Walk walk(all_reduce);
    CHECK(all_reduce.chunks == 2);
    CHECK(walk.critical <= 2 * (2 * floor_log2(nodes) + local - 1));
    for (int node = 0; node < nodes; ++node) {
      const auto out = [&, l = local](const test::Sent& m) { return m.from / l == node && m.to / l != node; };
      const auto staying = [&, l = local](const test::Sent& m) { return m.from / l == node && m.to / l == node; };
      CHECK(walk.sent(out) <= 4);                                           // two chunks of a leaf once, of an inner node three times
      CHECK(walk.sent(staying) == static_cast<uint32_t>(4 * (local - 1)));  // two chunks up and down
    }
    for (const Collective way : {Collective::broadcast, Collective::reduce}) {
      const Schedule schedule = fused("chained_tree", way, local * nodes, {local, nodes}, local / 2);
      CHECK(critical(schedule) <= 2 * floor_log2(nodes) + 1 + 2 * (local - 1));
      const auto abroad = [l = local](const test::Sent& m) { return m.from / l != m.to / l; };
      CHECK(test::Walk(schedule).sent(abroad) == static_cast<uint32_t>(2 * (nodes - 1)));
    }
  }
}

TEST_CASE("one_shot: one hop; two_shot: two, and 2M(N-1)/N sent; naive: two, and (N-1)M in and out of the server") {
  for (int ranks = 2; ranks <= 16; ++ranks) {
    CHECK(critical(fused("one_shot", Collective::all_reduce, ranks)) == 1);
    CHECK(all_send(fused("one_shot", Collective::all_reduce, ranks), ranks - 1, 1));
    for (const Collective blocks : {Collective::reduce_scatter, Collective::all_gather, Collective::all_to_all}) {
      CHECK(critical(fused("one_shot", blocks, ranks)) == 1);
      CHECK(all_send(fused("one_shot", blocks, ranks), ranks - 1, ranks));
    }
    CHECK(critical(fused("two_shot", Collective::all_reduce, ranks)) == 2);
    CHECK(all_send(fused("two_shot", Collective::all_reduce, ranks), 2 * (ranks - 1), ranks));
    for (const Collective way : {Collective::broadcast, Collective::reduce}) {
      CHECK(critical(fused("two_shot", way, ranks, {}, 1)) == (ranks == 2 && way == Collective::broadcast ? 1 : 2));
    }
    const Schedule naive = fused("naive", Collective::all_reduce, ranks);
    CHECK(critical(naive) == 2);
    CHECK(test::Walk(naive).sent_by(0) == static_cast<uint32_t>(ranks - 1));
    CHECK(test::Walk(naive).sent_to(0) == static_cast<uint32_t>(ranks - 1));
  }
}

TEST_CASE("pat: ceil(log2 N) rounds of one message, of two where blocks don't lie evenly, and M(N-1)/N sent") {
  for (int ranks = 2; ranks <= 64; ++ranks) {
    for (const Collective half : halves) {
      const Schedule schedule = fused("pat", half, ranks);
      INFO(ranks << " ranks");
      CHECK(critical(schedule) == ceil_log2(ranks));
      CHECK(all_send(schedule, ranks - 1, ranks));
      std::vector<int> messages(static_cast<size_t>(ranks));
      for (const auto& message : test::Walk(schedule).messages) ++messages[static_cast<size_t>(message.from)];
      for (const int n : messages) CHECK(n <= (std::has_single_bit(static_cast<unsigned>(ranks)) ? 1 : 2) * ceil_log2(ranks));
    }
  }
}

TEST_CASE("sums are in the order of ranks where a family promises the same bits for every number of channels and every grid") {
  for (int ranks = 1; ranks <= 16; ++ranks) {
    std::vector<Rank> order;
    for (Rank r = 0; r < ranks; ++r) order.push_back(r);
    for (const std::string_view family : {"naive", "one_shot", "two_shot", "halving_doubling"}) {
      INFO(family << " for " << ranks << " ranks");
      const Schedule schedule = fused(family, Collective::all_reduce, ranks);
      const test::Walk walk(schedule);
      for (uint32_t chunk = 0; chunk < schedule.chunks; ++chunk) CHECK(walk.output(ranks - 1, chunk).ranks == order);
    }
  }
}

TEST_CASE("scratch is used only where a partial result has no other place") {
  for (int ranks = 1; ranks <= 24; ++ranks) {
    test::each_shape(ranks, [&](const Family& family, const Shape& shape) {
      const Schedule schedule = fuse(*make(family.name, shape));
      INFO(family.name << ": " << text(shape));
      const bool several_rounds = family.name != "ring" && family.name != "naive" && family.name != "one_shot";
      const bool needed = shape.collective == Collective::reduce_scatter && several_rounds;
      CHECK(schedule.scratch <= (needed ? schedule.layout().input_chunks() : 0));
    });
  }
}

TEST_CASE("a reduce-scatter along dimensions keeps what the first of them leaves") {
  for (const auto& grid : {std::vector<int>{2, 2, 2}, {3, 4}, {4, 3}, {5, 3, 2}}) {
    int ranks = 1;
    for (const int extent : grid) ranks *= extent;
    for (const std::string_view family : {"bucket", "halving_doubling"}) {
      const Schedule schedule = fused(family, Collective::reduce_scatter, ranks, grid, 0, 3);
      CHECK(schedule.scratch == schedule.layout().input_chunks() / static_cast<uint32_t>(grid[0]));
    }
  }
}

TEST_CASE("in place nothing is copied inside of a rank") {
  for (int ranks = 2; ranks <= 16; ++ranks) {
    test::each_shape(ranks, [&](const Family& family, const Shape& shape) {
      const Schedule schedule = fuse(*make(family.name, shape));
      if (!schedule.layout().has_in_place()) return;
      // pat's reduce-scatter brings at most one block a round to where the others lie, so that they go in one message.
      if (family.name == "pat" && shape.collective == Collective::reduce_scatter) return;
      INFO(family.name << ": " << text(shape));
      const schedule::Cells cells(schedule.layout(), schedule.scratch, true);
      for (const auto& program : schedule.programs) {
        for (const auto& step : program.steps) {
          if (step.from.count != 0 || !step.src.present() || !step.dst.present()) continue;
          CHECK(cells.of(program.rank, step.src.buffer, step.src.first) == cells.of(program.rank, step.dst.buffer, step.dst.first));
        }
      }
    });
  }
}

TEST_CASE("a rank without output writes none") {
  test::each_shape(9, [&](const Family& family, const Shape& shape) {
    const Schedule schedule = *make(family.name, shape);
    for (const auto& program : schedule.programs) {
      for (const auto& step : program.steps) {
        CHECK((schedule.layout().has_output(program.rank) || !step.dst.present() || step.dst.buffer == Buffer::scratch));
      }
    }
  });
}
