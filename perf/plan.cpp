#include <fmt/format.h>

#include "base/text.h"
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
  const topo::Family* found = topo::family_named(family);
  if (found == nullptr) {
    std::vector<std::string_view> names;
    for (const topo::Family& f : topo::families()) names.push_back(f.name);
    const std::string_view near = nearest(family, names);
    return complain({Code::invalid_argument, fmt::format("plan {}: must be one of {}{}", family, fmt::join(names, ", "),
                                                         near.empty() ? "" : fmt::format("; did you mean {}?", near))});
  }
  schedule::Schedule made = found->make(ranks, channels);
  if (!unfused) made = schedule::fuse(std::move(made));
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
