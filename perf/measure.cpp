#include "perf/measure.h"

#include <fmt/format.h>

#include <array>
#include <chrono>
#include <cstring>

#include "base/text.h"
#include "perf/check.h"

namespace gyre::perf {
namespace {

using Clock = std::chrono::steady_clock;

Status call_once(engine::Communicator& communicator, const Case& c, const Place& place) {
  if (c.benchmark->collective) {
    return communicator.run({*c.benchmark->collective, c.count, c.type, c.op, c.root}, place.input, place.output);
  }
  using Kind = engine::Transfer::Kind;
  const Rank rank = communicator.rank();
  const std::array transfers{engine::Transfer{Kind::send, (rank + 1) % c.ranks, place.input, c.count, c.type},
                             engine::Transfer{Kind::receive, (rank + c.ranks - 1) % c.ranks, place.output, c.count, c.type}};
  return communicator.exchange(transfers);
}

// Nobody leaves before everybody has come: so that ranks start together, and before a wait for the bootstrap, since a rank that only
// sends may be through before its messages have left, and moves them only while it is in a call.
Status meet(engine::Communicator& communicator) {
  using Kind = engine::Transfer::Kind;
  const int ranks = communicator.size();
  const Rank rank = communicator.rank();
  std::array<uint8_t, 2> words{};
  for (int distance = 1; distance < ranks; distance *= 2) {
    const std::array transfers{engine::Transfer{Kind::send, (rank + distance) % ranks, &words[0], 1, DataType::uint8},
                               engine::Transfer{Kind::receive, (rank + ranks - distance) % ranks, &words[1], 1, DataType::uint8}};
    GYRE_TRY(communicator.exchange(transfers));
  }
  return {};
}

}  // namespace

Place out_of_place(const Case& c, Rank rank, void* input, void* output) {
  return {c.has_input(rank) ? input : nullptr, c.has_output(rank) ? output : nullptr, output, false};
}
Place in_place(const Case& c, Rank rank, void* output) {
  auto* memory = static_cast<std::byte*>(output);
  const size_t size = size_of(c.type);
  return {c.has_input(rank) ? memory + c.input_offset(rank) * size : nullptr,
          c.has_output(rank) ? memory + c.output_offset(rank) * size : nullptr, memory, true};
}

Status check(engine::Communicator& communicator, const Case& c, const Place& place, int calls, Measured& measured) {
  const Rank rank = communicator.rank();
  const size_t used = place.in_place ? c.bytes() : c.output_elements(rank) * size_of(c.type);
  auto* behind = static_cast<std::byte*>(place.memory) + used;
  for (int i = 0; i < calls; ++i) {
    std::memset(place.memory, 0xff, used);
    set_guard(behind);
    prepare(c, rank, place.input);
    GYRE_TRY(call_once(communicator, c, place));
    GYRE_TRY(meet(communicator));
    size_t wrong = count_wrong(c, rank, place.output) + count_trespasses(behind);
    if (!place.in_place) wrong += count_changed(c, rank, place.input);
    for (const std::string& text : GYRE_TRY(communicator.bootstrap().all_gather(std::to_string(wrong)))) {
      measured.wrong += parse_number(text).value_or(1);
    }
    measured.checked = true;
  }
  return {};
}

Status time(engine::Communicator& communicator, const Case& c, const Place& place, int warmup, int iterations, Measured& measured) {
  // Zeros stay zeros under every operation, so that no call is slowed by overflow or denormal numbers.
  const Rank rank = communicator.rank();
  if (place.input != nullptr) std::memset(place.input, 0, c.input_elements(rank) * size_of(c.type));
  if (place.output != nullptr) std::memset(place.output, 0, c.output_elements(rank) * size_of(c.type));
  GYRE_TRY(communicator.bootstrap().barrier());
  for (int i = 0; i < warmup; ++i) GYRE_TRY(call_once(communicator, c, place));
  GYRE_TRY(meet(communicator));
  const auto start = Clock::now();
  for (int i = 0; i < iterations; ++i) GYRE_TRY(call_once(communicator, c, place));
  const std::chrono::duration<double, std::micro> elapsed = Clock::now() - start;
  GYRE_TRY(meet(communicator));
  double sum_us = 0;
  for (const std::string& text : GYRE_TRY(communicator.bootstrap().all_gather(fmt::format("{}", elapsed.count()))))
    sum_us += std::stod(text);
  measured.time_us = sum_us / c.ranks / iterations;
  measured.algbw = static_cast<double>(c.bytes()) / measured.time_us / 1e3;
  measured.busbw = measured.algbw * bus_factor(*c.benchmark, c.ranks);
  return {};
}

}  // namespace gyre::perf
