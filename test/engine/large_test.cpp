// More than 4 GiB at once, so that no size or offset is cut to 32 bits on its way. Hidden, since it takes 9 GiB of memory:
// test-memory "[.4 GiB]".
#include <fmt/format.h>

#include <cstring>

#include "engine/communicator.h"
#include "test/catch.h"
#include "test/ranks.h"
#include "test/text.h"
#include "transport/shared_heap.h"

using namespace gyre;
using namespace gyre::engine;

namespace {

constexpr size_t large_block = size_t{1} << 20, large_blocks = 4608;  // 4.5 GiB
constexpr size_t large_bytes = large_blocks * large_block;

/// Of so many bytes, which a rank sends and receives.
struct LargeMemory {
  explicit LargeMemory(bool on_heap) : heap(on_heap) {
    data = static_cast<char*>(heap ? *transport::SharedHeap::of_process().allocate(large_bytes) : ::operator new(large_bytes));
  }
  ~LargeMemory() {
    if (heap) {
      [[maybe_unused]] const Status released = transport::SharedHeap::of_process().release(data);
    } else {
      ::operator delete(data);
    }
  }
  LargeMemory(const LargeMemory&) = delete;
  LargeMemory& operator=(const LargeMemory&) = delete;

  /// All of a block has one value, which tells it from those that lie 4 GiB away, and from the other rank's.
  static char value(size_t block, Rank rank) { return static_cast<char>(block % 61 + static_cast<size_t>(rank)); }
  void fill(size_t first, size_t end, Rank rank) const {
    for (size_t b = first; b < end; ++b) std::memset(data + b * large_block, value(b, rank), large_block);
  }
  /// Empty: each block has its value.
  template <class Value>
  std::string wrong(const Value& expected) const {
    for (size_t b = 0; b < large_blocks; ++b) {
      const char* const block = data + b * large_block;
      if (block[0] != expected(b) || std::memcmp(block, block + 1, large_block - 1) != 0) return fmt::format("block {} is wrong", b);
    }
    return {};
  }

  bool heap;
  char* data;
};

std::string large_calls(Communicator& communicator, bool on_heap) {
  const LargeMemory memory(on_heap);
  const Rank rank = communicator.rank();
  memory.fill(0, large_blocks, rank);
  Status status = communicator.all_reduce(memory.data, memory.data, large_bytes, DataType::int8, ReduceOp::sum);
  if (!status) return test::error_of(status);
  std::string wrong = memory.wrong([](size_t b) { return static_cast<char>(2 * (b % 61) + 1); });
  if (!wrong.empty()) return "all_reduce: " + wrong;

  constexpr size_t half = large_blocks / 2;
  const auto own = static_cast<size_t>(rank) * half;
  memory.fill(own, own + half, rank);
  status = communicator.run({Collective::all_gather, half * large_block, DataType::int8, ReduceOp::sum, 0}, memory.data + own * large_block,
                            memory.data);
  if (!status) return test::error_of(status);
  wrong = memory.wrong([](size_t b) { return LargeMemory::value(b, b < half ? 0 : 1); });
  if (!wrong.empty()) return "all_gather: " + wrong;

  memory.fill(0, large_blocks, rank);
  const Transfer::Kind kind = rank == 0 ? Transfer::Kind::send : Transfer::Kind::receive;
  const Transfer transfer{kind, 1 - rank, memory.data, large_bytes, DataType::int8};
  status = communicator.exchange({&transfer, 1});
  if (!status) return test::error_of(status);
  wrong = memory.wrong([](size_t b) { return LargeMemory::value(b, 0); });
  return wrong.empty() ? "" : "exchange: " + wrong;
}

}  // namespace

TEST_CASE("calls of more than 4 GiB are right", "[.4 GiB]") {
  for (const auto& [backend, on_heap] : {std::pair{"shm", false}, std::pair{"shm", true}, std::pair{"tcp", false}}) {
    INFO(backend << (on_heap ? ", shared heap" : ""));
    const auto config = test::all_configured({std::string("GYRE_TRANSPORT=") + backend});
    CHECK(test::first_wrong(test::run_ranks(2, config, [on = on_heap](Communicator& c) { return large_calls(c, on); })) == "");
  }
}
