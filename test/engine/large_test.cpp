// More than 4 GiB at once, so that no size or offset is cut to 32 bits on its way.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "engine/communicator.h"
#include "test/catch.h"
#include "test/engine/folded_heap.h"
#include "test/engine/folded_memory.h"
#include "test/ranks.h"
#include "test/text.h"

using namespace gyre;
using namespace gyre::engine;
using test::FoldedHeap;
using test::FoldedMemory;

namespace {

constexpr int large_ranks = 2;
constexpr size_t large_page = FoldedMemory::page_bytes;
constexpr size_t large_bytes = FoldedMemory::bytes, large_block = large_bytes / large_ranks;
static_assert(large_block % large_page == 0 && large_block % FoldedMemory::fold_bytes != 0);

/// What all bytes of a page are.
uint8_t large_value(size_t offset) {
  const uint64_t fold_page = offset / large_page % (FoldedMemory::fold_bytes / large_page);
  const auto value = static_cast<uint8_t>((fold_page + 1) * 0x9e3779b97f4a7c15 >> 56);
  return value == 0xff ? 0 : value;  // a float of those is no number
}

/// A call, and how its buffers look: a block begins where it lies in the buffer that has all blocks.
struct LargeCall {
  Collective collective;
  size_t block_bytes;
  bool shifts_input, shifts_output;  // they begin with this rank's block
};
constexpr LargeCall large_calls[] = {
    {Collective::all_reduce, large_bytes, false, false}, {Collective::reduce, large_bytes, false, false},
    {Collective::broadcast, large_bytes, false, false},  {Collective::reduce_scatter, large_block, false, true},
    {Collective::all_gather, large_block, true, false},  {Collective::gather, large_block, true, false},
    {Collective::scatter, large_block, false, true},     {Collective::all_to_all, large_block, true, true},
};

struct LargeBuffers {
  std::byte *input, *output;

  void fill(size_t shift, uint8_t more) const {
    FoldedMemory::for_pages([&](size_t at) {
      std::memset(input + at, static_cast<uint8_t>(large_value(at + shift) + more), large_page);
      std::memset(output + at, 0x5a, large_page);
    });
  }
  /// Of an output of so many bytes, empty: each byte is `times` what is there, and `more`.
  std::string wrong(size_t size, size_t shift, unsigned times, unsigned more) const {
    std::string first;
    FoldedMemory::for_pages([&](size_t at) {
      if (!first.empty() || at >= size) return;
      const auto expected = static_cast<std::byte>(times * large_value(at + shift) + more);
      const std::byte* page = output + at;
      const bool right = *page == expected && std::memcmp(page, page + 1, large_page - 1) == 0;
      if (!right)
        first = fmt::format("the page at {:#x} begins with {:#x} and not {:#x}", at, static_cast<int>(*page), static_cast<int>(expected));
    });
    return first;
  }
};

/// Bytes are summed. Floats are averaged, of which all ranks have the same: that is what comes of them.
std::string large_call(Communicator& communicator, const LargeBuffers& memory, const LargeCall& call, DataType type) {
  constexpr Rank root = 1;
  const Rank rank = communicator.rank();
  const size_t own = static_cast<size_t>(rank) * large_block;
  const bool sums = reduces(call.collective) && is_integer(type);
  memory.fill(call.shifts_input ? own : 0, static_cast<uint8_t>(sums ? rank : 0));
  const Call made{call.collective, call.block_bytes / size_of(type), type, is_integer(type) ? ReduceOp::sum : ReduceOp::avg,
                  rooted(call.collective) ? root : 0};
  if (const Status status = communicator.run(made, memory.input, memory.output); !status) return test::error_of(status);
  const bool at_root = call.collective == Collective::reduce || call.collective == Collective::gather;
  if (at_root && rank != root) return {};
  const size_t size = call.collective == Collective::reduce_scatter || call.collective == Collective::scatter ? large_block : large_bytes;
  const std::string wrong = memory.wrong(size, call.shifts_output ? own : 0, sums ? 2 : 1, sums ? 1 : 0);
  return wrong.empty() ? "" : fmt::format("{}: {}", name(call.collective), wrong);
}

/// All calls, or those of these collectives.
std::string large_calls_right(Communicator& communicator, const LargeBuffers& memory, const std::vector<Collective>& only, DataType type) {
  for (const LargeCall& call : large_calls) {
    if (!only.empty() && std::find(only.begin(), only.end(), call.collective) == only.end()) continue;
    if (std::string wrong = large_call(communicator, memory, call, type); !wrong.empty()) return wrong;
  }
  return {};
}

std::string large_exchange(Communicator& communicator, const LargeBuffers& memory) {
  memory.fill(0, 0);
  const bool sends = communicator.rank() == 0;
  const Transfer transfer{sends ? Transfer::Kind::send : Transfer::Kind::receive, 1 - communicator.rank(),
                          sends ? memory.input : memory.output, large_bytes, DataType::uint8};
  if (const Status status = communicator.exchange({&transfer, 1}); !status) return test::error_of(status);
  const std::string wrong = sends ? "" : memory.wrong(large_bytes, 0, 1, 0);
  return wrong.empty() ? "" : "exchange: " + wrong;
}

/// The same in ordinary buffers; all calls: also an exchange.
std::string large_right(const std::vector<std::string>& settings, const std::vector<Collective>& only = {}) {
  const std::array<FoldedMemory, 2 * large_ranks> memories;  // not made by the ranks' threads, where an exception would end all
  return test::first_wrong(test::run_ranks(large_ranks, test::all_configured(settings), [&](Communicator& communicator) -> std::string {
    const auto own = 2 * static_cast<size_t>(communicator.rank());
    const LargeBuffers memory{memories[own].data(), memories[own + 1].data()};
    const std::string wrong = large_calls_right(communicator, memory, only, DataType::uint8);
    return wrong.empty() && only.empty() ? large_exchange(communicator, memory) : wrong;
  }));
}

/// The same in buffers of the shared heap, without an exchange.
std::string large_mapped_right(std::vector<std::string> settings, const std::vector<Collective>& only = {},
                               DataType type = DataType::uint8) {
  const std::array<FoldedHeap, 2 * large_ranks> heaps;
  settings.emplace_back("GYRE_TRANSPORT=shm");
  return test::first_wrong(test::run_ranks(large_ranks, test::all_configured(settings), [&](Communicator& communicator) -> std::string {
    const auto own = 2 * static_cast<size_t>(communicator.rank());
    const LargeBuffers memory{heaps[own].data(), heaps[own + 1].data()};
    // The first call maps all of them, which are folded after it.
    const Status status = communicator.all_reduce(memory.input, memory.output, 64 << 10, DataType::uint8, ReduceOp::sum);
    if (!status) return test::error_of(status);
    for (const size_t i : {own, own + 1}) {
      if (const int places = heaps[i].fold(); places != large_ranks) return fmt::format("mapped in {} places", places);
    }
    return large_calls_right(communicator, memory, only, type);
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

TEST_CASE("calls of more than 4 GiB are right where all ranks map the buffers", "[large]") { CHECK(large_mapped_right({}) == ""); }

TEST_CASE("ordered reductions of more than 4 GiB are right where all ranks map the buffers", "[large]") {
  CHECK(large_mapped_right({"GYRE_NUMERICS=ordered"}, {Collective::all_reduce, Collective::reduce_scatter}, DataType::float32) == "");
}
