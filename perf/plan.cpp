#include <fmt/format.h>

#include "engine/plan.h"
#include "perf/commands.h"
#include "schedule/fuse.h"
#include "schedule/print.h"
#include "topo/algorithms.h"

namespace gyre::perf {
namespace {

std::string counted(size_t number, std::string_view noun) { return fmt::format("{} {}{}", number, noun, number == 1 ? "" : "s"); }

}  // namespace

int plan(const std::string& family, int ranks, uint32_t channels, bool unfused, const Config& config) {
  auto built = topo::make(family, {Collective::all_reduce, ranks, channels, 0, {}});
  if (!built) return complain(built.error());
  schedule::Schedule made = unfused ? *std::move(built) : schedule::fuse(*std::move(built));
  fmt::print("{} all-reduce, {}, {}, {}\n", family, counted(static_cast<size_t>(ranks), "rank"), counted(channels, "channel"),
             counted(made.chunks, "chunk"));
  fmt::print("s send, c copy, r receive, rr receive and reduce; <from >to in[chunk] =out[chunk]\n\n{}\n", schedule::print(made));
  const transport::Slots slots{static_cast<uint32_t>(*config.slots), *config.slot_bytes};
  const auto proven = engine::prove(std::move(made), slots);
  if (!proven) return complain(proven.error());
  fmt::print(
      "verified: every output chunk has each rank's part once, in one association on all ranks; no deadlock with {} slots\n"
      "per connection and {}; in place and out of place, buffered and posted\n",
      slots.credits, counted((*proven)->slices, "slice"));
  return 0;
}

}  // namespace gyre::perf
