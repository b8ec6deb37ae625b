// Blocks that ranks read straight from each other's ordinary buffers.
#include <fmt/format.h>
#include <sys/mman.h>

#include <csignal>
#include <cstring>
#include <thread>

#include "engine/communicator.h"
#include "engine/direct.h"
#include "test/catch.h"
#include "test/engine/checked_direct.h"
#include "test/engine/direct_bounds.h"
#include "test/kept_log.h"
#include "test/ranks.h"
#include "test/slow_builds.h"
#include "test/text.h"

using namespace gyre;
using namespace gyre::engine;
using gyre::test::all_configured;
using gyre::test::checked_direct;
using gyre::test::contains;
using gyre::test::first_wrong;
using gyre::test::run_ranks;

namespace {

using Ordinary = test::JobMemory<int32_t>;
using OnHeap = test::JobMemory<int32_t, test::HeapAllocator<int32_t>>;

// Memory that this process can use and the kernel does not read: here, whole pages that a handler opens when they are first touched.
struct Closed {
  static inline std::byte* first = nullptr;
  static inline size_t bytes = 0;

  static void close(const void* memory, size_t size) {
    constexpr uintptr_t page = 4096;
    const auto begin = reinterpret_cast<uintptr_t>(memory), end = (begin + size) / page * page;
    const size_t before = (page - begin % page) % page;
    first = static_cast<std::byte*>(const_cast<void*>(memory)) + before;
    bytes = end - begin - before;
    ::mprotect(first, bytes, PROT_NONE);
  }
  static void open(int /*signal*/) { ::mprotect(first, bytes, PROT_READ | PROT_WRITE); }
};

/// While there is one, what is closed opens when it is touched.
class OpensClosed {
 public:
  OpensClosed() {
    struct sigaction handler {};
    handler.sa_handler = Closed::open;
    REQUIRE(::sigaction(SIGSEGV, &handler, &before_) == 0);
  }
  OpensClosed(const OpensClosed&) = delete;
  OpensClosed& operator=(const OpensClosed&) = delete;
  ~OpensClosed() {
    Closed::bytes = 0;
    ::sigaction(SIGSEGV, &before_, nullptr);
  }

 private:
  struct sigaction before_ {};
};

}  // namespace

namespace {

/// Both ranks of a call that is read straight, to be moved by hand.
struct Straight {
  Ordinary job;
  std::string text = "a call";
  std::vector<DirectPlan> plans;
  std::vector<std::unique_ptr<Direct>> ranks;

  Straight(const Call& call, size_t bounce_bytes, bool in_place) : job(call, 2, in_place) {
    std::unique_ptr<transport::Board> boards[2];
    for (Rank r = 0; r < 2; ++r) boards[r] = *transport::Board::create(r, 2, bounce_bytes);
    for (Rank r = 0; r < 2; ++r) {
      REQUIRE(boards[r]->open(1 - r, boards[1 - r]->address()));
      boards[r]->attach(std::vector(2, *transport::Attached::open(transport::ProcessAddress::self())));
      plans.push_back(*DirectForms(r, 2, test::direct_bounds(false), bounce_bytes, true).plan(call, false, true, true));
      REQUIRE(plans.back().read);
    }
    for (Rank r = 0; r < 2; ++r) {
      ranks.push_back(std::make_unique<Direct>(r, std::move(boards[r]), 1, Away{8192, 1}));
      ranks.back()->bind(plans[static_cast<size_t>(r)], {0, 1, 1, &text}, job.buffers(r));
    }
  }
};

}  // namespace

TEST_CASE("two ranks read large blocks straight from each other's buffers, unless one does not want to") {
  const auto counts = test::sampled(std::vector<size_t>{100003, 4095, 4096, 8192, 8193, (1 << 20) + 1});
  for (const Rank unwilling : {-1, 1}) {
    const auto configs = [&](Rank rank) {
      return test::configured({"GYRE_TRANSPORT=shm", rank == unwilling ? "GYRE_ATTACH=0" : "GYRE_ATTACH=2"});
    };
    CHECK(first_wrong(run_ranks(2, configs, [&](Communicator& communicator) -> std::string {
            for (const Collective collective : all_collectives()) {
              for (const size_t count : counts) {
                const bool shown = count <= (collective == Collective::scatter ? 4096 : 8192);  // where a root's input fits the board
                const bool large = rooted(collective) ? !shown && count <= 1 << 19 : count >= 4096;
                const bool can_be = !reduces(collective) || collective == Collective::reduce_scatter;
                for (Rank root = 0; can_be && root < (rooted(collective) ? 2 : 1); ++root) {
                  const Call call{collective, count, DataType::int32, ReduceOp::sum, root};
                  const bool straight = contains(communicator.explain(call), "attached");
                  if (straight != (unwilling < 0 && large)) return fmt::format("{} of {}: {}", name(collective), count, straight);
                  for (const bool in_place : {false, true}) {
                    if (in_place && collective == Collective::all_to_all) continue;
                    const std::string wrong = checked_direct<Ordinary>(communicator, call, in_place);
                    if (!wrong.empty()) return wrong;
                  }
                }
              }
            }
            return {};
          })) == "");
  }
}

TEST_CASE("ranks that share processors read large blocks straight") {
  constexpr int ranks = 5;
  const bool crowded = std::thread::hardware_concurrency() < ranks;
  CHECK(first_wrong(run_ranks(ranks, all_configured({"GYRE_TRANSPORT=shm"}), [&](Communicator& communicator) -> std::string {
          for (const Collective collective : all_collectives()) {
            for (const Rank root : {0, 3}) {
              for (const bool in_place : {false, true}) {
                if (reduces(collective) || (root != 0 && !rooted(collective)) || (in_place && collective == Collective::all_to_all))
                  continue;
                const Call call{collective, (1 << 16) + 3, DataType::int32, ReduceOp::sum, root};
                if (crowded && *communicator.algorithm(call) != "two_shot") return "goes by messages";
                const std::string wrong = checked_direct<Ordinary>(communicator, call, in_place);
                if (!wrong.empty()) return wrong;
              }
            }
          }
          return {};
        })) == "");
}

// What they find differs, and both ways are tried, also where one is by copies on the board, and where one of them only gets there by
// messages; calls on the heap between them take no part.
TEST_CASE("ranks agree call by call whether they read straight, whatever each has found or wants") {
  for (const auto& [ranks, second] : {std::pair{2, "GYRE_ATTACH=1"}, {2, "GYRE_ATTACH=2"}, {3, "GYRE_ATTACH=1"}}) {
    const auto configs = [&, wants = second](Rank rank) {
      return test::configured({"GYRE_TRANSPORT=shm", rank == 1 ? wants : "GYRE_ATTACH=1"});
    };
    const bool again = ranks == 2 && second[std::strlen(second) - 1] == '1';
    CHECK(first_wrong(run_ranks(ranks, configs, [&](Communicator& communicator) -> std::string {
            for (const Collective collective :
                 {Collective::all_gather, Collective::all_to_all, Collective::reduce_scatter, Collective::broadcast}) {
              for (const size_t count : {size_t{4096}, size_t{1} << 15, size_t{1} << 18}) {
                // Long; of these both ways are tried again within 300 calls.
                if (count == 1 << 18 && !(again && collective == Collective::reduce_scatter)) continue;
                const Call call{collective, count, DataType::int32, ReduceOp::sum, 0};
                for (int i = 0; i < (test::full_speed ? 300 : 40); ++i) {
                  const std::string wrong =
                      i % 7 == 3 ? checked_direct<OnHeap>(communicator, call, false) : checked_direct<Ordinary>(communicator, call, false);
                  if (!wrong.empty()) return fmt::format("call {}: {}", i, wrong);
                }
              }
            }
            return {};
          })) == "");
  }
}

TEST_CASE("messages carry a call whose buffer can't be read straight") {
  const OpensClosed handler;
  for (const auto& [collective, ranks] : {std::pair{Collective::all_gather, 2},
                                          {Collective::all_gather, 3},
                                          {Collective::all_to_all, 2},
                                          {Collective::broadcast, 2},
                                          {Collective::broadcast, 3},
                                          {Collective::scatter, 2},
                                          {Collective::gather, 2}}) {
    INFO(name(collective) << ", " << ranks << " ranks");
    const test::KeptLog log;
    CHECK(first_wrong(run_ranks(ranks, all_configured({"GYRE_TRANSPORT=shm", "GYRE_ATTACH=2"}),
                                [&, of = collective](Communicator& communicator) -> std::string {
                                  // In place, so that rank 1 has nothing to copy: what others read of its input it does not touch.
                                  const Call call{of, 65536, DataType::int32, ReduceOp::sum, of == Collective::gather ? 0 : 1};
                                  Ordinary job(call, communicator.size(), of != Collective::all_to_all);
                                  const Buffers buffers = job.buffers(communicator.rank());
                                  if (communicator.rank() == 1) Closed::close(buffers.input, call.count * sizeof(int32_t));
                                  const Status status = communicator.run(call, buffers.input, buffers.output);
                                  if (communicator.rank() == 1) Closed::open(0);
                                  return status ? job.wrong(communicator.rank()) : status.error().what;
                                })) == "");
    const bool tried = ranks == 2 || static_cast<int>(std::thread::hardware_concurrency()) < ranks;
    CHECK(log.has("rank 0: a buffer can't be read straight, copies carry the call") == tried);
  }
}

TEST_CASE("a reduce-scatter in place goes by copies before it has written over its input, where one rank's can't be read straight") {
  const OpensClosed handler;
  constexpr size_t count = 65536, bytes = 2 * count * sizeof(int32_t);
  for (const bool closed : {false, true}) {
    const test::KeptLog log;
    CHECK(
        first_wrong(run_ranks(2, all_configured({"GYRE_TRANSPORT=shm", "GYRE_ATTACH=2"}), [&](Communicator& communicator) -> std::string {
          void* const pages = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
          auto* const data = static_cast<int32_t*>(pages);
          const auto own = static_cast<size_t>(communicator.rank()) * count;
          for (size_t i = 0; i < 2 * count; ++i) data[i] = static_cast<int32_t>(i) + communicator.rank();
          if (closed && communicator.rank() == 1) Closed::close(pages, bytes);
          std::string wrong;
          const Status status = communicator.run({Collective::reduce_scatter, count, DataType::int32, ReduceOp::sum, 0}, data, data + own);
          if (communicator.rank() == 1) Closed::open(0);
          if (!status) wrong = status.error().what;
          for (size_t i = own; i < own + count && wrong.empty(); ++i) {
            if (data[i] != static_cast<int32_t>(2 * i + 1)) wrong = fmt::format("element {} is {}", i, data[i]);
          }
          ::munmap(pages, bytes);
          return wrong;
        })) == "");
    CHECK(log.has("rank 1: a buffer can't be read straight, copies carry the call") == closed);
  }
}

// What the first and last byte do not show: in place other ranks' inputs may be sums by then, and nobody adds to these again.
TEST_CASE("a reduce-scatter whose buffer turns out not to be readable goes by messages, or in place is an error on all ranks") {
  const OpensClosed handler;
  const Call call{Collective::reduce_scatter, 1 << 18, DataType::int32, ReduceOp::sum, 0};
  const size_t block = call.count * sizeof(int32_t);
  for (const bool in_place : {false, true}) {
    const auto words =
        run_ranks(2, all_configured({"GYRE_TRANSPORT=shm", "GYRE_ATTACH=2"}), [&](Communicator& communicator) -> std::string {
          Ordinary job(call, 2, in_place);
          const Buffers buffers = job.buffers(communicator.rank());
          if (communicator.rank() == 1) Closed::close(static_cast<const std::byte*>(buffers.input) + block / 2, block / 4);
          const Status status = communicator.run(call, buffers.input, buffers.output);
          if (communicator.rank() == 1) Closed::open(0);
          return status ? job.wrong(communicator.rank()) : status.error().what;
        });
    INFO(words[0] << "; " << words[1]);
    if (in_place) {
      CHECK((contains(words[0], "rank 1's memory") && contains(words[0], "process_vm_readv")));
      CHECK(contains(words[1], "rank 0 gave up"));
    } else {
      CHECK(first_wrong(words) == "");
    }
  }
}

TEST_CASE("equal reduce-scatters have equal bits, whatever calls find, where all ranks' buffers are ordinary and where only some are") {
  constexpr size_t count = 40000;
  for (const bool some_in_heap : {false, true}) {
    const auto words = run_ranks(2, all_configured({"GYRE_TRANSPORT=shm"}), [&](Communicator& communicator) -> std::string {
      const bool in_heap = some_in_heap && communicator.rank() == 0;
      test::HeapVector<float> heap(in_heap ? 3 * count : 1);
      std::vector<float> own(3 * count), first;
      float* const input = in_heap ? heap.data() : own.data();
      float* const out = input + 2 * count;
      // Averages of these are rounded otherwise if they are divided before they are added.
      for (size_t i = 0; i < 2 * count; ++i)
        input[i] = static_cast<float>((i * 7 + static_cast<size_t>(communicator.rank())) % 997) * 1.4e-45F;
      for (int i = 0; i < 30; ++i) {
        const Status status = communicator.run({Collective::reduce_scatter, count, DataType::float32, ReduceOp::avg, 0}, input, out);
        if (!status) return status.error().what;
        if (i == 0) first.assign(out, out + count);
        if (std::memcmp(first.data(), out, count * sizeof(float)) != 0) return fmt::format("call {} differs", i);
      }
      return {};
    });
    CHECK(first_wrong(words) == "");
  }
}

TEST_CASE("a reduce-scatter's bits are the same read straight and by copies") {
  for (const char* numerics : {"GYRE_NUMERICS=default", "GYRE_NUMERICS=ordered"}) {
    std::vector<test::Words> bits;
    for (const char* attach : {"GYRE_ATTACH=0", "GYRE_ATTACH=2"}) {
      bits.push_back(run_ranks(2, all_configured({"GYRE_TRANSPORT=shm", attach, numerics}), [](Communicator& communicator) {
        std::string all;
        for (const DataType type : {DataType::float32, DataType::bfloat16, DataType::float8e4m3}) {
          for (const ReduceOp op : {ReduceOp::sum, ReduceOp::avg, ReduceOp::max}) {
            constexpr size_t count = 200003;  // several slices, the last not of whole lines
            std::vector<std::byte> in(2 * count * size_of(type)), out(count * size_of(type));
            for (size_t i = 0; i < in.size(); ++i)
              in[i] = static_cast<std::byte>((i * 37 + static_cast<size_t>(communicator.rank()) * 11) & 0x3f);
            const Status status = communicator.run({Collective::reduce_scatter, count, type, op, 0}, in.data(), out.data());
            if (!status) return status.error().what;
            all.append(reinterpret_cast<const char*>(out.data()), out.size());
          }
        }
        return all;
      }));
    }
    CHECK(bits[0][0].size() > 1000000);
    CHECK(bits[0] == bits[1]);
  }
}

TEST_CASE("a reduce-scatter in place that could not read on is not begun again, though it now could") {
  const Call call{Collective::reduce_scatter, 1 << 18, DataType::int32, ReduceOp::sum, 0};
  const size_t block = call.count * sizeof(int32_t);
  Straight both(call, 2 << 20, true);
  const Buffers buffers = both.job.buffers(0);
  CHECK(!both.ranks[0]->move().done);
  CHECK(!both.ranks[1]->move().done);
  Closed::close(static_cast<const std::byte*>(both.job.buffers(1).input) + block / 2, block / 4);
  CHECK(!both.ranks[0]->move().done);
  REQUIRE(both.ranks[0]->wrong());
  Closed::open(0);
  Closed::bytes = 0;
  const std::vector<std::byte> left(static_cast<std::byte*>(buffers.output), static_cast<std::byte*>(buffers.output) + block);
  for (int i = 0; i < 3; ++i) CHECK(!both.ranks[0]->move().done);
  CHECK(both.ranks[0]->wrong());
  CHECK(std::memcmp(left.data(), buffers.output, block) == 0);
}

TEST_CASE("a call that another rank has given up after it read is never done, whatever that rank's buffer holds by then") {
  for (const bool gives_up : {false, true}) {
    const Call call{Collective::all_gather, 65536, DataType::int32, ReduceOp::sum, 0};
    Straight both(call, 0, false);
    auto& ranks = both.ranks;
    CHECK(!ranks[0]->move().done);  // has shown its buffers, and is not looked after for a while
    CHECK(!ranks[1]->move().done);  // has read those, and waits
    if (gives_up) ranks[1]->take_back();
    CHECK(ranks[0]->move().done == !gives_up);
    if (!gives_up) CHECK(ranks[1]->move().done);
  }
}
