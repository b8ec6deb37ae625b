// Collectives between ranks of a host that reach each other's memory: all buffers in shared heaps, some, or none.
#include "engine/direct.h"

#include <fmt/format.h>

#include <atomic>
#include <barrier>
#include <chrono>
#include <random>
#include <thread>

#include "engine/communicator.h"
#include "kernels/canonical.h"
#include "perf/reference.h"
#include "test/catch.h"
#include "test/engine/checked_direct.h"
#include "test/engine/direct_bounds.h"
#include "test/engine/heap_allocator.h"
#include "test/ranks.h"
#include "test/slow_builds.h"
#include "test/text.h"

using namespace gyre;
using namespace gyre::engine;
using gyre::test::all_configured;
using gyre::test::checked_direct;
using gyre::test::contains;
using gyre::test::first_wrong;
using gyre::test::HeapAllocator;
using gyre::test::run_ranks;
using transport::SharedHeap;

namespace {

// A sanitizer makes a rank that waits for others slow.
const std::vector<int> some_ranks = test::sanitized ? std::vector<int>{3} : std::vector<int>{2, 3, 5};
const auto over_shm = all_configured({"GYRE_TRANSPORT=shm", "GYRE_SLOT_BYTES=4K"});

using InHeap = test::JobMemory<int32_t, HeapAllocator<int32_t>>;
using Private = test::JobMemory<int32_t>;
// Around what fits a line, what is staged at best, what fits the board, and what is bounced.
const std::vector<size_t> direct_counts{0, 1, 13, 128, 129, 513, 2049, 8192, 8193, 30011};

/// All collectives of all roots; `in_heap` says whose buffers lie there.
std::string direct_right(Communicator& communicator, const std::function<bool(Rank)>& in_heap) {
  std::string wrong;
  for (const size_t count : direct_counts) {
    for (const Collective collective : all_collectives()) {
      for (Rank root = 0; root < (rooted(collective) ? communicator.size() : 1); ++root) {
        for (const bool in_place : {false, true}) {
          if (!wrong.empty() || (in_place && collective == Collective::all_to_all)) continue;
          const Call call{collective, count, DataType::int32, all_reduce_ops()[count % reduce_op_count], root};
          wrong = in_heap(communicator.rank()) ? checked_direct<InHeap>(communicator, call, in_place)
                                               : checked_direct<Private>(communicator, call, in_place);
        }
      }
    }
  }
  return wrong;
}

test::HeapVector<std::byte> heap_bytes(size_t bytes) { return test::HeapVector<std::byte>(bytes); }

/// All types and operations, on floats that are rounded.
std::string direct_types_right(Communicator& communicator, size_t count, bool in_heap) {
  for (const DataType type : all_data_types()) {
    for (const ReduceOp op : all_reduce_ops()) {
      auto heap = heap_bytes(in_heap ? count * size_of(type) : 1);
      std::vector<std::byte> own(count * size_of(type));
      std::byte* data = in_heap ? heap.data() : own.data();
      perf::fill_input(data, count, type, op, communicator.rank(), communicator.size());
      const Status status = communicator.all_reduce(data, data, count, type, op);
      if (!status) return status.error().what;
      const size_t wrong = perf::count_wrong(data, count, type, op, communicator.size());
      if (wrong != 0) return fmt::format("{} of {} {} {} wrong", wrong, count, name(type), name(op));
    }
  }
  return {};
}

/// The bits of an all-reduce of rounded floats on this rank.
std::string direct_bits(Communicator& communicator, size_t count, ReduceOp op, bool in_heap) {
  const Call call{Collective::all_reduce, count, DataType::float32, op, 0};
  auto run = [&](auto memory) -> std::string {
    const Buffers buffers = memory.buffers(communicator.rank());
    const Status status = communicator.run(call, buffers.input, buffers.output);
    if (!status) return status.error().what;
    return {static_cast<const char*>(buffers.output), count * sizeof(float)};
  };
  return in_heap ? run(test::JobMemory<float, HeapAllocator<float>>(call, communicator.size(), false))
                 : run(test::JobMemory<float>(call, communicator.size(), false));
}

}  // namespace

TEST_CASE("every collective is right where all buffers lie in shared heaps, some, or none") {
  for (const int ranks : some_ranks) {
    INFO(ranks << " ranks");
    CHECK(first_wrong(run_ranks(ranks, over_shm, [](Communicator& c) { return direct_right(c, [](Rank) { return true; }); })) == "");
    CHECK(first_wrong(run_ranks(ranks, over_shm, [](Communicator& c) { return direct_right(c, [](Rank r) { return r == 1; }); })) == "");
    CHECK(first_wrong(run_ranks(ranks, over_shm, [](Communicator& c) { return direct_right(c, [](Rank) { return false; }); })) == "");
  }
}

TEST_CASE("direct all-reduces are right for all types and operations") {
  for (const int ranks : test::sampled(std::array{3, 2, 4})) {
    INFO(ranks << " ranks");
    CHECK(first_wrong(run_ranks(ranks, over_shm, [](Communicator& communicator) {
            std::string wrong;
            for (const size_t count : std::initializer_list<size_t>{7, 600, 20001}) {
              for (const bool in_heap : {false, true}) {
                if (wrong.empty()) wrong = direct_types_right(communicator, count, in_heap);
              }
            }
            return wrong;
          })) == "");
  }
}

TEST_CASE("a direct all-reduce gives the same bits on all ranks") {
  for (const bool in_heap : {false, true}) {
    for (const ReduceOp op : {ReduceOp::sum, ReduceOp::avg}) {
      for (const size_t count : std::initializer_list<size_t>{5, 2000, 40000, 600'000}) {
        const auto words =
            run_ranks(3, over_shm, [&](Communicator& communicator) { return direct_bits(communicator, count, op, in_heap); });
        INFO(count << " " << name(op) << (in_heap ? " in heaps" : ""));
        CHECK(words[0].size() == count * sizeof(float));
        CHECK((words[0] == words[1] && words[1] == words[2]));
      }
    }
  }
}

TEST_CASE("the passes of all ranks make a collective, also past the caches") {
  for (const int ranks : {2, 3}) {
    for (const Collective collective : all_collectives()) {
      for (const bool in_place : {false, true}) {
        if (in_place && collective == Collective::all_to_all) continue;
        const Call call{collective, 1001, DataType::int32, ReduceOp::sum, ranks - 1};
        INFO(name(collective) << " between " << ranks << (in_place ? ", in place" : ""));
        test::JobMemory<int32_t> memory(call, ranks, in_place);
        std::vector<RankMemory> reachable;
        for (Rank r = 0; r < ranks; ++r) {
          const Buffers own = memory.buffers(r);
          reachable.push_back({static_cast<const std::byte*>(own.input), static_cast<std::byte*>(own.output), nullptr});
        }
        for (Rank r = 0; r < ranks; ++r) {
          const DirectPlan plan = *DirectForms(r, ranks, test::direct_bounds(false), 0, false).plan(call, false, false, true);
          REQUIRE(Passes(r, ranks).run(plan, *plan.mapped, reachable, true));
        }
        CHECK(memory.wrong() == "");
      }
    }
  }
}

TEST_CASE("an all-reduce is right at the ends of the sizes that are reduced in copies, by all that it can run") {
  for (const int ranks : some_ranks) {
    CHECK(first_wrong(run_ranks(ranks, over_shm, [](Communicator& communicator) {
            std::string wrong;
            for (const size_t count : std::initializer_list<size_t>{512, 513, 4096, 4097, 8192, 8193, 1 << 19, (1 << 19) + 1}) {
              const Call call{Collective::all_reduce, count, DataType::int32, ReduceOp::sum, 0};
              const std::string family = *communicator.algorithm(call);
              constexpr size_t shown = 512, copied_from = 4096;  // between them as ranks have processors
              if ((count <= shown && family != "one_shot") || (count > copied_from && count <= 1 << 19 && family != "two_shot"))
                return "not " + family;
              for (const bool in_place : {false, true}) {
                if (wrong.empty()) wrong = checked_direct<Private>(communicator, call, in_place);
              }
            }
            return wrong;
          })) == "");
  }
}

TEST_CASE("direct collectives of random kinds and buffers follow each other at once") {
  for (const int ranks : {2, 4}) {
    CHECK(first_wrong(run_ranks(ranks, over_shm, [&](Communicator& communicator) {
            std::mt19937 random(11);  // alike on all ranks
            std::string wrong;
            for (int i = 0; i < (test::sanitized ? 150 : 400) && wrong.empty(); ++i) {
              const auto collective = static_cast<Collective>(random() % collective_count);
              const size_t count = random() % (size_t{1} << random() % 17);
              const Rank root = rooted(collective) ? static_cast<Rank>(random()) % ranks : 0;
              const bool in_place = random() % 2 == 0 && collective != Collective::all_to_all;
              const auto in_heap = random() % 3;  // all, none, or some
              const bool own = in_heap == 0 || (in_heap == 1 && communicator.rank() % 2 == 0);
              const Call call{collective, count, DataType::int32, ReduceOp::sum, root < 0 ? -root : root};
              wrong = own ? checked_direct<InHeap>(communicator, call, in_place) : checked_direct<Private>(communicator, call, in_place);
            }
            return wrong;
          })) == "");
  }
}

// Only one rank waits for the others; nobody may run so far ahead that a line or a slot is overwritten before it was read.
TEST_CASE("a rank that is late finds all small broadcasts and sums as they were shown") {
  // Of 6000 bytes some take a slot, and on two processors nobody waits for all in between, as ranks do that may map the buffers.
  const bool only_small = GENERATE(true, false);
  CHECK(first_wrong(run_ranks(3, over_shm, [only_small](Communicator& communicator) -> std::string {
          for (int i = 0; i < 200; ++i) {
            if (communicator.rank() == i % 3) std::this_thread::sleep_for(std::chrono::microseconds(50));
            std::vector<int32_t> values(only_small || i % 20 < 8 ? 1 : 1500, communicator.rank() == 0 ? i : -1);
            Status status =
                communicator.run({Collective::broadcast, values.size(), DataType::int32, ReduceOp::sum, 0}, values.data(), values.data());
            if (!status) return status.error().what;
            if (values != std::vector<int32_t>(values.size(), i)) return fmt::format("broadcast {} brought {}", i, values.back());
            int32_t sum = -1;
            status = communicator.run({Collective::reduce, 1, DataType::int32, ReduceOp::sum, 2}, values.data(), &sum);
            if (!status) return status.error().what;
            if (communicator.rank() == 2 && sum != 3 * i) return fmt::format("reduce {} brought {}", i, sum);
          }
          return {};
        })) == "");
}

TEST_CASE("whoever is awaited and awaits nobody goes on after a small rooted call, wherever the buffers lie") {
  for (const bool in_heap : {false, true}) {
    std::atomic<bool> gone_on{false};
    CHECK(first_wrong(run_ranks(2, over_shm, [&](Communicator& communicator) -> std::string {
            while (communicator.rank() == 1 && !gone_on) std::this_thread::yield();
            auto heap = heap_bytes(12288);
            std::vector<std::byte> own(12288);
            std::byte* data = in_heap ? heap.data() : own.data();
            std::string wrong;
            for (const Collective collective : all_collectives()) {
              if (!rooted(collective)) continue;
              const bool root_gives = collective == Collective::broadcast || collective == Collective::scatter;
              const Call call{collective, collective == Collective::scatter ? 512U : 1024U, DataType::int32, ReduceOp::sum,
                              root_gives ? 0 : 1};
              const Status status = communicator.run(call, data, data + 4096, std::chrono::seconds(20));
              if (!status && wrong.empty()) wrong = status.error().what;
            }
            gone_on = true;
            return wrong;
          })) == "");
  }
}

TEST_CASE("direct calls that differ are an error that names them, on all ranks") {
  for (const bool in_heap : {false, true}) {
    const auto words = run_ranks(3, over_shm, [&](Communicator& communicator) -> std::string {
      auto data = heap_bytes(8000);
      std::vector<std::byte> own(8000);
      const size_t count = communicator.rank() == 2 ? 1001 : 1000;
      void* memory = in_heap ? data.data() : own.data();
      const Status status = communicator.all_reduce(memory, memory, count, DataType::float32, ReduceOp::sum);
      return status ? "no error" : status.error().what;
    });
    for (const std::string& said : words) {
      INFO(said);
      CHECK(contains(said, "count=1001"));
      CHECK(contains(said, "rank 2"));
    }
  }
}

TEST_CASE("calls of ordinary buffers larger than a bounce buffer are right, whatever is left for the last piece") {
  for (const int ranks : some_ranks) {
    CHECK(first_wrong(run_ranks(ranks, over_shm, [](Communicator& communicator) {
            std::string wrong;
            for (const Collective collective : all_collectives()) {
              for (const size_t count : std::initializer_list<size_t>{262144, 262145, 524288 + 7, 786432 + 100003}) {
                const bool by_blocks = collective == Collective::reduce_scatter || collective == Collective::all_to_all;
                const size_t block = by_blocks ? count / static_cast<size_t>(communicator.size()) : count;
                const Call call{collective, block, DataType::int32, all_reduce_ops()[count % reduce_op_count], 0};
                for (const bool in_place : {false, true}) {
                  if (rooted(collective) || (in_place && collective == Collective::all_to_all)) continue;
                  if (wrong.empty()) wrong = checked_direct<Private>(communicator, call, in_place);
                }
              }
            }
            return wrong;
          })) == "");
  }
}

TEST_CASE("a rank that leaves is named by those that wait for it in a direct call") {
  for (const bool in_heap : {false, true}) {
    const auto words = run_ranks(3, over_shm, [&](Communicator& communicator) -> std::string {
      if (communicator.rank() == 1) return {};
      auto heap = heap_bytes(80000);
      std::vector<std::byte> own(80000);
      std::byte* data = in_heap ? heap.data() : own.data();
      const Status status = communicator.all_reduce(data, data, 20000, DataType::float32, ReduceOp::sum);
      return status ? "no error" : status.error().what;
    });
    CHECK(contains(words[0], "rank 1 has left"));
    CHECK(contains(words[2], "rank 1 has left"));
  }
}

TEST_CASE("a rank that is moved now and then says that it has moved, piece by piece") {
  constexpr size_t bounce_bytes = 128 << 10;
  const Call call = GENERATE(Call{Collective::all_reduce, 100000, DataType::int32, ReduceOp::sum, 0},
                             Call{Collective::all_gather, 100000, DataType::int32, ReduceOp::sum, 0},
                             Call{Collective::reduce_scatter, 50000, DataType::int32, ReduceOp::sum, 0},
                             Call{Collective::all_to_all, 50000, DataType::int32, ReduceOp::sum, 0});  // 7 pieces
  std::unique_ptr<transport::Board> boards[2];
  for (Rank r = 0; r < 2; ++r) boards[r] = *transport::Board::create(r, 2, bounce_bytes);
  for (Rank r = 0; r < 2; ++r) REQUIRE(boards[r]->open(1 - r, boards[1 - r]->address()));
  Private job(call, 2, false);
  std::vector<DirectPlan> plans;
  std::vector<std::unique_ptr<Direct>> ranks;
  for (Rank r = 0; r < 2; ++r) {
    plans.push_back(*DirectForms(r, 2, test::direct_bounds(false), bounce_bytes, false).plan(call, false, true, true));
    REQUIRE(plans.back().bounced->pieces == 7);
    ranks.push_back(std::make_unique<Direct>(r, std::move(boards[r]), 1, Away{8192, 1}));
  }
  const std::string text = "all_reduce";
  for (Rank r = 0; r < 2; ++r) ranks[static_cast<size_t>(r)]->bind(plans[static_cast<size_t>(r)], {0, 1, 1, &text}, job.buffers(r));
  bool done = false;
  for (int i = 0; i < 100 && !done; ++i) {
    bool fast_done = false;
    for (bool moves = true; moves && !fast_done;) {
      const auto moved = ranks[1]->move();
      moves = moved.any;
      fast_done = moved.done;
    }
    const auto moved = ranks[0]->move();
    CHECK(moved.any);
    done = moved.done;
  }
  CHECK(done);
  CHECK(ranks[1]->move().done);
  for (Rank r = 0; r < 2; ++r) CHECK(job.wrong(r) == "");
}

namespace {

// Around what is staged, mapped, and bounced, in one piece and in two.
const std::vector<size_t> ordered_counts{9, 3000, 20000, (1 << 18) + 2};

/// An ordered reduction of what all ranks have, in place, in heaps and not; empty: it is the canonical tree's.
std::string as_canonical(Communicator& communicator, const Call& call, const std::vector<std::vector<std::byte>>& inputs) {
  const auto rank = static_cast<size_t>(communicator.rank());
  const bool scatters = call.collective == Collective::reduce_scatter;
  const size_t elements = call.count * (scatters ? inputs.size() : 1), bytes = elements * size_of(call.type);
  const size_t block = call.count * size_of(call.type), own = scatters ? rank * block : 0;
  std::vector<const void*> all;
  for (const auto& input : inputs) all.push_back(input.data());
  std::vector<std::byte> expected(bytes), ordinary(bytes);
  kernels::reduce_canonical(expected.data(), all, elements, call.type, call.op);
  auto heap = heap_bytes(bytes);
  for (std::byte* data : {heap.data(), ordinary.data()}) {
    std::memcpy(data, inputs[rank].data(), bytes);
    const Status status = communicator.run(call, data, data + own);
    if (!status) return status.error().what;
    const bool has_output = call.collective != Collective::reduce || communicator.rank() == call.root;
    if (has_output && std::memcmp(data + own, expected.data() + own, block) != 0)
      return fmt::format("{} of {} {} {}{}", name(call.collective), call.count, name(call.type), name(call.op),
                         data == heap.data() ? " in heaps" : "");
  }
  return {};
}

}  // namespace

// Staged, mapped and on copies, of types whose partial sums are wider than their elements among them.
TEST_CASE("ordered direct reductions are the canonical tree's, wherever the buffers lie") {
  const auto ordered = all_configured({"GYRE_TRANSPORT=shm", "GYRE_NUMERICS=ordered"});
  for (const int ranks : some_ranks) {
    std::vector<std::vector<std::byte>> inputs;
    for (Rank r = 0; r < ranks; ++r) {
      std::mt19937 random(static_cast<unsigned>(r) + 1);
      auto& input = inputs.emplace_back(ordered_counts.back() * sizeof(double));
      for (auto& byte : input) byte = static_cast<std::byte>(random() & 0x3f);  // no NaN, no infinity
    }
    CHECK(first_wrong(run_ranks(ranks, ordered, [&](Communicator& communicator) {
            std::string wrong;
            for (const DataType type : {DataType::float32, DataType::float64, DataType::float16, DataType::bfloat16, DataType::float8e4m3,
                                        DataType::float8e5m2, DataType::int32}) {
              for (const ReduceOp op : {ReduceOp::sum, ReduceOp::avg, ReduceOp::prod}) {
                for (const size_t count : ordered_counts) {
                  const auto blocks = static_cast<size_t>(ranks);
                  for (const Call& call :
                       {Call{Collective::all_reduce, count, type, op, 0}, Call{Collective::reduce, count, type, op, ranks - 1},
                        Call{Collective::reduce_scatter, count / blocks, type, op, 0}}) {
                    if (wrong.empty()) wrong = as_canonical(communicator, call, inputs);
                  }
                }
              }
            }
            return wrong;
          })) == "");
  }
}

TEST_CASE("peers hear once of memory that they need, and once that it is gone, whatever is used then") {
  DirectMemory memory(2);
  auto& heap = SharedHeap::of_process();
  void* first = *heap.allocate(100);
  void* second = *heap.allocate(100);
  const uint64_t a = memory.segment(first, 100);
  const uint64_t b = memory.segment(second, 100);
  HeapNews news;
  CHECK(memory.tell(a, b, news));
  CHECK(news.added_count == 2);
  CHECK(!memory.tell(a, b, news));
  CHECK(heap.release(first));
  CHECK(memory.segment(first, 100) == 0);
  CHECK(memory.tell(0, 0, news));
  CHECK(news.added_count == 0);
  REQUIRE(news.gone_count == 1);
  CHECK(news.gone[0] == a);
  CHECK(!memory.tell(b, b, news));
  CHECK(heap.release(second));
}
