#include "engine/plan.h"

#include <random>
#include <set>

#include "engine/host_machine.h"
#include "schedule/fuse.h"
#include "test/all_reduce.h"
#include "test/catch.h"
#include "test/engine/loopback_mesh.h"
#include "topo/algorithms.h"
#include "transport/posted_fifo.h"

using namespace gyre;
using namespace gyre::engine;

namespace {

std::shared_ptr<const Proven> proven(std::string_view family, int ranks, uint32_t channels = 1, transport::Slots slots = {8, 65536}) {
  return *prove(family, {Collective::all_reduce, ranks, channels, 0, {}}, slots);
}

/// The root sends all chunks to everybody in one message.
schedule::Schedule by_hand(Collective collective, int ranks, uint32_t chunks, Rank root) {
  schedule::Builder b("by_hand", {collective, ranks, root, chunks}, 1);
  for (Rank r = 0; r < ranks; ++r) {
    if (r != root) b.copy(root, r, {{}, 0, chunks});
  }
  b.round();
  return std::move(b).build();
}

/// What is wrong with the pieces of a plan; empty when they cover every element once, in order, and fit the slots.
std::string wrong_pieces(const Plan& plan, size_t slot_bytes, uint32_t slices_proven) {
  const size_t element = size_of(plan.call().type);
  size_t next = 0;
  for (uint32_t chunk = 0; chunk < plan.schedule().chunks; ++chunk) {
    for (uint32_t slice = 0; slice < plan.rounds() * plan.slices(); ++slice) {
      const Piece piece = plan.piece(chunk, slice);
      if (piece.count != 0 && piece.first != next) return "a gap or an overlap in chunk " + std::to_string(chunk);
      if (piece.first > plan.call().count) return "a piece behind the end";
      if (piece.count * element * plan.schedule().longest_message() > slot_bytes) return "a piece larger than a slot";
      next += piece.count;
    }
  }
  if (next != plan.call().count) return "elements are left out";
  if (plan.slices() > slices_proven) return "more slices in flight than were proven";
  if (plan.slices() == 0 || plan.rounds() == 0) return "nothing to run";
  return {};
}

}  // namespace

TEST_CASE("a plan sends nothing between ranks that are not joined, and says to peers which it takes for such") {
  const schedule::RankPairs missing{{1, 2}};
  const auto proven = prove("ring", {Collective::all_reduce, 4, 1, 0, {}}, {8, 65536}, {}, missing);
  REQUIRE(proven);
  for (const auto& program : (*proven)->schedule.programs) {
    for (const auto& step : program.steps) {
      for (const Rank to : (*proven)->schedule.peers(step.to)) CHECK((std::min(program.rank, to) != 1 || std::max(program.rank, to) != 2));
    }
  }
  const Call call{Collective::all_reduce, 1000, DataType::float32, ReduceOp::sum, 0};
  CHECK(Plan::make(*proven, call, 65536)->text().find("algorithm=ring missing=") != std::string::npos);
  const auto none = prove("one_shot", {Collective::all_to_all, 4, 1, 0, {}}, {8, 65536}, {}, missing);
  CHECK(error_of(none) == "no way from rank 1 to rank 2 on channel 0 that others' messages leave free");
}

TEST_CASE("bounds of chunks: the worked case") { CHECK(chunk_bounds(9, 4, 1) == std::vector<size_t>{0, 2, 4, 6, 9}); }

TEST_CASE("bounds of chunks: no elements, one, and fewer than chunks") {
  CHECK(chunk_bounds(0, 3, 16) == std::vector<size_t>{0, 0, 0, 0});
  CHECK(chunk_bounds(1, 3, 1) == std::vector<size_t>{0, 0, 0, 1});
  CHECK(chunk_bounds(2, 3, 1) == std::vector<size_t>{0, 0, 1, 2});
  CHECK(chunk_bounds(5, 3, 16) == std::vector<size_t>{0, 0, 0, 5});
  CHECK(chunk_bounds(7, 1, 16) == std::vector<size_t>{0, 7});
}

TEST_CASE("bounds of chunks: they cover the count, begin at units, and differ by at most one unit") {
  std::mt19937_64 random(1);
  for (int i = 0; i < 20000; ++i) {
    const size_t count = random() >> (random() % 60 + 4);
    const auto chunks = static_cast<uint32_t>(random() % 70 + 1);
    const size_t unit = size_t{1} << random() % 7;
    const auto bounds = chunk_bounds(count, chunks, unit);
    INFO(count << " elements, " << chunks << " chunks, unit " << unit);
    REQUIRE(bounds.size() == chunks + 1);
    REQUIRE(bounds.front() == 0);
    REQUIRE(bounds.back() == count);
    size_t least = SIZE_MAX;
    size_t most = 0;
    for (uint32_t c = 0; c < chunks; ++c) {
      REQUIRE(bounds[c] <= bounds[c + 1]);
      REQUIRE((bounds[c] % unit == 0 || bounds[c] == count));
      least = std::min(least, bounds[c + 1] - bounds[c]);
      most = std::max(most, bounds[c + 1] - bounds[c]);
    }
    REQUIRE(most - least <= unit);
  }
}

TEST_CASE("bounds of chunks do not overflow near 2^60 elements") {
  for (const size_t count : {(size_t{1} << 60) - 1, size_t{1} << 60, (size_t{1} << 60) + 1}) {
    for (const uint32_t chunks : {1U, 3U, 64U, 1024U}) {
      const auto bounds = chunk_bounds(count, chunks, 64);
      CHECK(bounds.back() == count);
      CHECK(std::is_sorted(bounds.begin(), bounds.end()));
      CHECK(bounds[1] >= count / chunks - 64);
    }
  }
}

TEST_CASE("pieces cover every element exactly once and fit a slot, whatever the sizes") {
  std::mt19937_64 random(2);
  for (int i = 0; i < 300; ++i) {
    const auto& family = topo::families()[random() % topo::families().size()];
    const int ranks = static_cast<int>(random() % 9 + 1);
    if (!topo::refusal(family, {Collective::all_reduce, ranks, 3, 0, {}}).empty()) continue;
    const transport::Slots slots{static_cast<uint32_t>(random() % 15 + 2), (random() % 16 + 1) * 4096};
    const auto made = proven(family.name, ranks, static_cast<uint32_t>(random() % 3 + 1), slots);
    for (int j = 0; j < 20; ++j) {
      const size_t count = random() % (size_t{1} << random() % 22);
      const DataType type = all_data_types()[random() % data_type_count];
      const Plan plan = *Plan::make(made, {Collective::all_reduce, count, type, ReduceOp::sum, 0}, slots.bytes);
      INFO(family.name << " for " << ranks << " ranks: " << plan.text() << ", " << slots.credits << " slots of " << slots.bytes
                       << " bytes");
      REQUIRE(wrong_pieces(plan, slots.bytes, made->slices).empty());
    }
  }
}

TEST_CASE("half of a connection's slots have slices of a chunk under way together, at most eight, none of less than 32 KiB") {
  for (const auto& [credits, most] : {std::pair{2U, 1U}, {3U, 1U}, {4U, 2U}, {8U, 4U}, {16U, 8U}, {64U, 8U}}) {
    const transport::Slots slots{credits, 65536};
    const auto made = proven("ring", 4, 1, slots);
    const auto slices = [&](size_t chunk_bytes) {
      return Plan::make(made, {Collective::all_reduce, 4 * chunk_bytes, DataType::uint8, ReduceOp::sum, 0}, slots.bytes)->slices();
    };
    INFO(credits << " credits");
    CHECK(slices(32 << 10) == 1);
    CHECK(slices((32 << 10) + 64) == std::min(2U, most));
    CHECK(slices(16 << 20) == most);
  }
}

TEST_CASE("a rank sends a round's slices of a chunk before anything has come from its peer") {
  const transport::Slots slots{8, 65536};
  std::vector<std::byte> data(2 << 20);
  const Plan plan =
      *Plan::make(proven("ring", 2, 1, slots), {Collective::all_reduce, data.size(), DataType::uint8, ReduceOp::sum, 0}, slots.bytes);
  const test::LoopbackMesh mesh(2, slots);
  HostMachine machine(0, 0, 0, mesh.fifos(0), Away{});
  machine.bind(plan, 7, {data.data(), data.data()}, nullptr);
  CHECK(machine.run());
  int arrived = 0;
  for (transport::Fifo& in = *mesh.fifos(1)[0]; in.front().data != nullptr; in.pop()) ++arrived;
  CHECK(arrived == 4);
}

TEST_CASE("pieces cover terabytes") {
  const size_t count = (size_t{1} << 40) + 1;
  for (const DataType type : {DataType::int8, DataType::float64}) {
    const Plan plan = *Plan::make(proven("ring", 4), {Collective::all_reduce, count, type, ReduceOp::sum, 0}, 65536);
    const uint64_t last = uint64_t{plan.rounds()} * plan.slices() - 1;
    REQUIRE(last < UINT32_MAX);
    size_t end = 0;
    for (uint32_t chunk = 0; chunk < 4; ++chunk) {
      CHECK(plan.piece(chunk, 0).first == end);
      uint32_t slice = static_cast<uint32_t>(last);
      while (plan.piece(chunk, slice).count == 0) --slice;
      end = plan.piece(chunk, slice).first + plan.piece(chunk, slice).count;
    }
    CHECK(end == count);
  }
}

TEST_CASE("a piece begins at a cache line, or at the unit that was asked for") {
  const Plan lines = *Plan::make(proven("ring", 3), {Collective::all_reduce, 100, DataType::float32, ReduceOp::sum, 0}, 4096);
  for (uint32_t chunk = 0; chunk < 3; ++chunk) CHECK(lines.piece(chunk, 0).first % 16 == 0);
  const Plan elements = *Plan::make(proven("ring", 3), {Collective::all_reduce, 100, DataType::float32, ReduceOp::sum, 0}, 4096, 4);
  CHECK(elements.piece(1, 0).first == 33);
  const Plan wider = *Plan::make(proven("ring", 3), {Collective::all_reduce, 100, DataType::float64, ReduceOp::sum, 0}, 4096, 4);
  CHECK(wider.piece(1, 0).first == 33);
}

TEST_CASE("plans of equal calls have the same hash, and every difference gives another") {
  const auto hash = [](std::string_view family, size_t count, DataType type, ReduceOp op) {
    return (*Plan::make(proven(family, 3), {Collective::all_reduce, count, type, op, 0}, 65536)).hash();
  };
  const uint64_t first = hash("ring", 1000, DataType::float32, ReduceOp::sum);
  CHECK(hash("ring", 1000, DataType::float32, ReduceOp::sum) == first);
  std::set<uint64_t> others{first};
  others.insert(hash("ring", 1001, DataType::float32, ReduceOp::sum));
  others.insert(hash("ring", 1000, DataType::int32, ReduceOp::sum));
  others.insert(hash("ring", 1000, DataType::float32, ReduceOp::max));
  others.insert(hash("naive", 1000, DataType::float32, ReduceOp::sum));
  CHECK(others.size() == 5);
}

TEST_CASE("a plan's hashes differ for many calls") {
  const auto made = proven("ring", 2);
  std::set<uint64_t> hashes;
  for (const DataType type : all_data_types()) {
    for (const ReduceOp op : all_reduce_ops()) {
      for (size_t count = 0; count < 50; ++count)
        hashes.insert((*Plan::make(made, {Collective::all_reduce, count, type, op, 0}, 65536)).hash());
    }
  }
  CHECK(hashes.size() == data_type_count * reduce_op_count * 50);
}

TEST_CASE("a plan says what all ranks must agree on") {
  const Plan plan = *Plan::make(proven("one_shot", 2), {Collective::all_reduce, 8, DataType::float16, ReduceOp::avg, 0}, 65536);
  CHECK(plan.text() == "all_reduce count=8 type=half op=avg algorithm=one_shot");
}

TEST_CASE("a plan says which root, and does not say what its collective has not") {
  const auto text = [](Collective collective, Rank root) {
    const auto made = prove(by_hand(collective, 2, 1, root), {8, 65536});
    return (*Plan::make(*made, {collective, 8, DataType::int8, ReduceOp::max, root}, 65536)).text();
  };
  CHECK(text(Collective::broadcast, 1) == "broadcast count=8 type=int8 root=1 algorithm=by_hand");
  CHECK(text(Collective::broadcast, 0) == "broadcast count=8 type=int8 root=0 algorithm=by_hand");
}

TEST_CASE("a message of many chunks fits a slot, if need be an element of each") {
  for (const uint32_t chunks : {1U, 3U, 64U, 700U, 1024U}) {
    const auto made = prove(by_hand(Collective::broadcast, 3, chunks, 0), {8, 4096});
    REQUIRE(made);
    for (const DataType type : {DataType::int8, DataType::float16, DataType::float32}) {
      for (const size_t count : {0U, 1U, 1000U, 50000U}) {
        const auto plan = Plan::make(*made, {Collective::broadcast, count, type, ReduceOp::sum, 0}, 4096);
        REQUIRE(plan);
        INFO(plan->text() << ", " << chunks << " chunks in a message");
        CHECK(wrong_pieces(*plan, 4096, (*made)->slices) == "");
      }
    }
  }
}

TEST_CASE("ranks whose messages fit their slots only with few elements of each chunk have the sums") {
  constexpr size_t ranks = 16, count = 10;
  for (const size_t slot_bytes : {32U, 64U}) {
    for (const std::string_view family : {"halving_doubling", "pat"}) {
      const transport::Slots slots{8, slot_bytes};
      const auto made = prove(family, {Collective::reduce_scatter, ranks, 1, 0, {}}, slots);
      REQUIRE(made);
      const Plan plan = *Plan::make(*made, {Collective::reduce_scatter, count, DataType::int32, ReduceOp::sum, 0}, slots.bytes);
      INFO(plan.text() << ", slots of " << slot_bytes << " bytes, messages of " << plan.message_bytes());
      CHECK(plan.message_bytes() == slot_bytes);
      CHECK(plan.slices() * plan.rounds() > 1);
      const test::LoopbackMesh mesh(ranks, slots);
      std::vector<std::vector<int32_t>> in(ranks, std::vector<int32_t>(ranks * count)), out(ranks, std::vector<int32_t>(count));
      std::vector<std::vector<std::byte>> scratch(ranks, std::vector<std::byte>(plan.scratch_bytes()));
      std::vector<HostMachine> machines;
      for (size_t rank = 0; rank < ranks; ++rank) {
        for (size_t i = 0; i < in[rank].size(); ++i) in[rank][i] = static_cast<int32_t>(rank * 1000 + i);
        machines.emplace_back(static_cast<Rank>(rank), 0, 0, mesh.fifos(rank), Away{});
        machines.back().bind(plan, 7, {in[rank].data(), out[rank].data()}, scratch[rank].data());
      }
      for (bool any = true; any;) {
        any = false;
        for (HostMachine& machine : machines) any = machine.run() || any;
      }
      for (size_t i = 0; i < ranks * count; ++i) CHECK(out[i / count][i % count] == static_cast<int32_t>(1000 * 120 + 16 * i));
    }
  }
}

TEST_CASE("a message that fits no slot even with an element of each chunk is an error that names the option") {
  const auto made = prove(by_hand(Collective::broadcast, 3, 1024, 0), {8, 4096});
  REQUIRE(made);
  const auto none = Plan::make(*made, {Collective::broadcast, 5000, DataType::float64, ReduceOp::sum, 0}, 4096);
  REQUIRE_FALSE(none);
  CHECK(none.error().what ==
        "broadcast count=5000 type=double root=0 algorithm=by_hand: a message of 1024 chunks is at least 8192 bytes, "
        "GYRE_SLOT_BYTES is 4096");
}

TEST_CASE("an unknown family is an error") {
  const auto none = prove("butterfly", {Collective::all_reduce, 2, 1, 0, {}}, {});
  REQUIRE_FALSE(none);
  CHECK(none.error().code == Code::invalid_argument);
  CHECK(none.error().what.find("there is no algorithm 'butterfly'") == 0);
}

TEST_CASE("too few slots for a family are an error, not a plan") {
  const auto none = prove("ring", {Collective::all_reduce, 3, 1, 0, {}}, {1, 4096});
  REQUIRE_FALSE(none);
  CHECK(none.error().what.find("deadlock") != std::string::npos);
}

TEST_CASE("what is run with fewer slices than were proven does not deadlock either") {
  for (const topo::Family& family : topo::families()) {
    for (int ranks = 1; ranks <= 9; ++ranks) {
      if (!topo::refusal(family, {Collective::all_reduce, ranks, 1, 0, {}}).empty()) continue;
      const schedule::Schedule fused = schedule::fuse(test::all_reduce(family.name, ranks, 1));
      for (const uint32_t credits : {2U, 3U, 8U, 16U}) {
        const transport::Slots slots{credits, 4096};
        const auto proven = prove(family.name, {Collective::all_reduce, ranks, 1, 0, {}}, slots);
        REQUIRE(proven);
        for (uint32_t slices = 1; slices <= (*proven)->slices; ++slices) {
          INFO(family.name << ", " << ranks << " ranks, " << credits << " credits, " << slices << " slices");
          CHECK(schedule::verify(fused, {credits, slices, schedule::Mode::buffered, true}));
          CHECK(schedule::verify(fused, {transport::PostedFifo::certain_credits(slots), slices, schedule::Mode::posted, true}));
        }
      }
    }
  }
}
