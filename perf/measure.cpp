#include "perf/measure.h"

#include <cstring>
#include <string>

#include "base/text.h"
#include "perf/caller.h"
#include "perf/check.h"

namespace gyre::perf {
namespace {

// One call; how many elements are wrong on this rank.
Result<uint64_t> check_once(const Lane& lane, const Case& c) {
  const Rank rank = lane.communicator->rank();
  const Place& place = lane.place;
  const size_t used = place.in_place ? c.bytes() : c.output_elements(rank) * size_of(c.type);
  auto* behind = static_cast<std::byte*>(place.memory) + used;
  std::memset(place.memory, 0xff, used);
  set_guard(behind);
  prepare(c, rank, place.input);
  GYRE_TRY(Caller(lane, c, 1).round());
  GYRE_TRY(meet(*lane.communicator));
  const uint64_t wrong = count_wrong(c, rank, place.output) + count_trespasses(behind);
  return place.in_place ? wrong : wrong + count_changed(c, rank, place.input);
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

Status check(std::span<const Lane> lanes, const Case& c, int calls, TimeLimit& limit, Measured& measured) {
  transport::Bootstrap& bootstrap = lanes.front().communicator->bootstrap();
  for (int i = 0; i < calls; ++i) {
    uint64_t wrong = 0;
    for (const Lane& lane : lanes) wrong += GYRE_TRY(check_once(lane, c));
    for (const std::string& text : GYRE_TRY(bootstrap.all_gather(std::to_string(wrong)))) measured.wrong += parse_number(text).value_or(1);
    measured.checked = true;
    if (!GYRE_TRY(limit.goes_on(bootstrap))) break;
  }
  return {};
}

}  // namespace gyre::perf
