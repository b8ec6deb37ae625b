#include "kernels/try_gates.h"

#include <algorithm>
#include <array>
#include <span>
#include <thread>

#include "kernels/mem.h"

namespace gyre::kernels {
namespace {

using Streams = std::span<const std::unique_ptr<Stream>>;

/// One of them has done all; false: none within that time.
Result<bool> one_ends(Streams streams, std::chrono::milliseconds limit) {
  const auto until = std::chrono::steady_clock::now() + limit;
  do {
    for (const auto& stream : streams) {
      if (GYRE_TRY(stream->done())) return true;
    }
    std::this_thread::yield();
  } while (std::chrono::steady_clock::now() < until);
  return false;
}

Status give(StepKernel kernel, Streams streams) {
  for (const auto& stream : streams) GYRE_TRY(stream->launch(kernel, StepArgs{}, 1));
  return {};
}

/// Opened before the streams behind it end, which wait for what they were given.
struct Opening {
  uint64_t* gate;
  ~Opening() { store_release(gate, all_tickets); }
};

}  // namespace

Result<GateTrial> try_gates(const OpenStream& open, StepKernel kernel, uint64_t* gate, std::chrono::milliseconds limit) {
  const GateTrial busy{Gates::unknown, "the GPU is busy"};
  std::array<std::unique_ptr<Stream>, 4> others;  // one may share the gate's queue by chance
  for (auto& other : others) other = GYRE_TRY(open(false));
  const Streams control = Streams(others).first(1);
  GYRE_TRY(give(kernel, control));
  if (!GYRE_TRY(one_ends(control, limit))) return busy;
  const auto closed = GYRE_TRY(open(true));
  const Opening opening{gate};
  if (const Status waits = closed->wait(gate, 1); !waits) return GateTrial{Gates::hold_others, waits.error().what};
  GYRE_TRY(give(kernel, others));
  if (GYRE_TRY(one_ends(others, limit))) return GateTrial{Gates::pass_others};
  store_release(gate, 1);
  if (!GYRE_TRY(one_ends(others, limit))) return busy;
  return GateTrial{Gates::hold_others, "streams stand still behind a closed gate"};
}

}  // namespace gyre::kernels
