// More than 4 GiB at once, so that no size or offset is cut to 32 bits on its way.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "engine/communicator.h"
#include "test/catch.h"
#include "test/engine/folded_memory.h"
#include "test/ranks.h"
#include "test/text.h"
#include "transport/shared_heap.h"

using namespace gyre;
using namespace gyre::engine;
using test::FoldedMemory;

namespace {

constexpr int large_ranks = 2;
constexpr size_t large_page = FoldedMemory::page_bytes;
constexpr size_t large_bytes = FoldedMemory::bytes, large_block = large_bytes / large_ranks;
static_assert(large_block % large_page == 0 && large_block % FoldedMemory::fold_bytes != 0);

/// What all bytes of a page are.
uint8_t large_value(size_t offset) {
  const uint64_t fold_page = offset / large_page % (FoldedMemory::fold_bytes / large_page);
  return static_cast<uint8_t>((fold_page + 1) * 0x9e3779b97f4a7c15 >> 56);
}

/// A call, and how its buffers look: a block begins where it lies in the buffer that has all blocks.
struct LargeCall {
  Collective collective;
  size_t count;
  bool shifts_input, shifts_output;  // they begin with this rank's block
};
constexpr LargeCall large_calls[] = {
    {Collective::all_reduce, large_bytes, false, false}, {Collective::reduce, large_bytes, false, false},
    {Collective::broadcast, large_bytes, false, false},  {Collective::reduce_scatter, large_block, false, true},
    {Collective::all_gather, large_block, true, false},  {Collective::gather, large_block, true, false},
    {Collective::scatter, large_block, false, true},     {Collective::all_to_all, large_block, true, true},
};

struct LargeBuffers {
  FoldedMemory input, output;

  void fill(size_t shift, uint8_t more) const {
    FoldedMemory::for_pages([&](size_t at) {
      std::memset(input.data() + at, static_cast<uint8_t>(large_value(at + shift) + more), large_page);
      std::memset(output.data() + at, 0x5a, large_page);
    });
  }
  /// Of an output of so many bytes, empty: each byte is `times` what is there, and `more`.
  std::string wrong(size_t size, size_t shift, unsigned times, unsigned more) const {
    std::string first;
    FoldedMemory::for_pages([&](size_t at) {
      if (!first.empty() || at >= size) return;
      const auto expected = static_cast<std::byte>(times * large_value(at + shift) + more);
      const std::byte* page = output.data() + at;
      const bool right = *page == expected && std::memcmp(page, page + 1, large_page - 1) == 0;
      if (!right)
        first = fmt::format("the page at {:#x} begins with {:#x} and not {:#x}", at, static_cast<int>(*page), static_cast<int>(expected));
    });
    return first;
  }
};

std::string large_call(Communicator& communicator, const LargeBuffers& memory, const LargeCall& call) {
  constexpr Rank root = 1;
  const Rank rank = communicator.rank();
  const size_t own = static_cast<size_t>(rank) * large_block;
  const bool sums = reduces(call.collective);
  memory.fill(call.shifts_input ? own : 0, static_cast<uint8_t>(sums ? rank : 0));
  const Status status = communicator.run({call.collective, call.count, DataType::uint8, ReduceOp::sum, rooted(call.collective) ? root : 0},
                                         memory.input.data(), memory.output.data());
  if (!status) return test::error_of(status);
  const bool at_root = call.collective == Collective::reduce || call.collective == Collective::gather;
  if (at_root && rank != root) return {};
  const size_t size = call.collective == Collective::reduce_scatter || call.collective == Collective::scatter ? large_block : large_bytes;
  const std::string wrong = memory.wrong(size, call.shifts_output ? own : 0, sums ? 2 : 1, sums ? 1 : 0);
  return wrong.empty() ? "" : fmt::format("{}: {}", name(call.collective), wrong);
}

std::string large_exchange(Communicator& communicator, const LargeBuffers& memory) {
  memory.fill(0, 0);
  const bool sends = communicator.rank() == 0;
  const Transfer transfer{sends ? Transfer::Kind::send : Transfer::Kind::receive, 1 - communicator.rank(),
                          sends ? memory.input.data() : memory.output.data(), large_bytes, DataType::uint8};
  if (const Status status = communicator.exchange({&transfer, 1}); !status) return test::error_of(status);
  const std::string wrong = sends ? "" : memory.wrong(large_bytes, 0, 1, 0);
  return wrong.empty() ? "" : "exchange: " + wrong;
}

/// All calls, or those of these collectives.
std::string large_right(const std::vector<std::string>& settings, const std::vector<Collective>& only = {}) {
  const std::array<LargeBuffers, large_ranks> memories;  // not made by the ranks' threads, where an exception would end all
  return test::first_wrong(test::run_ranks(large_ranks, test::all_configured(settings), [&](Communicator& communicator) -> std::string {
    const LargeBuffers& memory = memories[static_cast<size_t>(communicator.rank())];
    for (const LargeCall& call : large_calls) {
      if (!only.empty() && std::find(only.begin(), only.end(), call.collective) == only.end()) continue;
      if (std::string wrong = large_call(communicator, memory, call); !wrong.empty()) return wrong;
    }
    return only.empty() ? large_exchange(communicator, memory) : "";
  }));
}

}  // namespace

TEST_CASE("calls of more than 4 GiB are right over shm, in pieces and read straight", "[large]") {
  CHECK(large_right({"GYRE_TRANSPORT=shm", "GYRE_ATTACH=2"}) == "");
}

TEST_CASE("calls of more than 4 GiB are right over shm, by messages", "[large]") {
  CHECK(large_right({"GYRE_TRANSPORT=shm", "GYRE_ATTACH=0", "GYRE_ALGORITHM=ring"},
                    {Collective::all_reduce, Collective::all_gather, Collective::all_to_all}) == "");
}

TEST_CASE("calls of more than 4 GiB are right over tcp", "[large]") { CHECK(large_right({"GYRE_TRANSPORT=tcp"}) == ""); }

// Hidden, since it takes 9 GiB of memory: test-memory "[.4 GiB]".
TEST_CASE("an all-reduce of more than 4 GiB in shared heaps is right", "[.4 GiB]") {
  CHECK(test::first_wrong(
            test::run_ranks(large_ranks, test::all_configured({"GYRE_TRANSPORT=shm"}), [](Communicator& communicator) -> std::string {
              auto& heap = transport::SharedHeap::of_process();
              auto* const data = static_cast<uint8_t*>(*heap.allocate(large_bytes));
              for (size_t at = 0; at < large_bytes; at += large_page)
                std::memset(data + at, static_cast<uint8_t>(large_value(at) + communicator.rank()), large_page);
              Status status = communicator.all_reduce(data, data, large_bytes, DataType::uint8, ReduceOp::sum);
              std::string wrong = status ? "" : test::error_of(status);
              for (size_t at = 0; wrong.empty() && at < large_bytes; at += large_page) {
                const auto expected = static_cast<uint8_t>(2 * large_value(at) + 1);
                if (data[at] != expected || std::memcmp(data + at, data + at + 1, large_page - 1) != 0) wrong = fmt::format("at {:#x}", at);
              }
              status = heap.release(data);
              return status ? wrong : test::error_of(status);
            })) == "");
}
