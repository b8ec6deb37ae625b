// Chooses, for a family, how its profile is got without its schedule.
#include <fmt/format.h>

#include <array>

#include "schedule/fuse.h"
#include "topo/algorithms.h"
#include "topo/profile_grid.h"

namespace gyre::topo {
namespace {

// Channels do the same, and one says all; or odd ones go the other way around, and two do.
Profile walked(const Family& family, const Shape& shape, const Placement& placement) {
  Shape walk = shape;
  if (!family.alternates) {
    walk.channels = 1;
  } else if (shape.channels % 2 == 0) {
    walk.channels = 2;
  }
  const uint32_t times = shape.channels / walk.channels;
  Profile out = profile(schedule::fuse(family.make(walk)), placement);
  out.chunks *= times, out.channels *= times;
  for (Busiest* port : {&out.port[inside], &out.port[between], &out.node_port}) port->chunks *= times;
  for (Tally* work : {&out.processor[0], &out.processor[1], &out.node_processor}) *work = *work * times;
  return out;
}

// Every count of a profile.
template <class Each>
void counts(Profile& p, Each each) {
  const auto tally = [&](Tally& t) {
    for (const size_t link : {inside, between}) each(t.hops[link]), each(t.port[link]), each(t.written[link]), each(t.ends[link]);
    each(t.reduced), each(t.copied), each(t.steps);
  };
  int64_t chunks = p.chunks;
  int64_t longest = p.longest_message;
  each(chunks), each(longest);
  p.chunks = static_cast<uint32_t>(chunks), p.longest_message = static_cast<uint32_t>(longest);
  for (int64_t& widest : p.widest) each(widest);
  for (int64_t& messages : p.messages) each(messages);
  for (int64_t& waits : p.waits) each(waits);
  for (Tally& t : p.path) tally(t);
  for (Tally& t : p.span) tally(t);
  for (Busiest* port : {&p.port[inside], &p.port[between], &p.node_port}) each(port->chunks), tally(port->around);
  for (Tally& t : p.processor) tally(t);
  tally(p.node_processor);
}

std::vector<int64_t> listed(Profile p) {
  std::vector<int64_t> all;
  counts(p, [&](int64_t& count) { all.push_back(count); });
  return all;
}

// Ranks whose schedules are made to count them: every rank of these deals with every other one, of the others with a few.
bool small_enough(const Family& family, const Shape& shape) {
  const bool all_pairs = family.growth == Growth::all_pairs || shape.collective == Collective::all_to_all;
  return shape.ranks <= (all_pairs ? 512 : 8192);
}
Error too_large(const Family& family, const Shape& shape) {
  return Error{Code::invalid_argument, fmt::format("{} of {}: so many ranks on so few nodes can't be counted", family.name, text(shape))};
}

// Families in which every rank, or one, deals with every other one the same way: their counts are polynomials of the second degree at
// most in the number of nodes, once there are a few. So three small numbers of nodes say all.
Result<Profile> continued(const Family& family, const Shape& shape, const Placement& placement) {
  const bool many_nodes = placement.per_node > 0 && placement.per_node < shape.ranks;
  const int unit = family.grid == GridUse::nodes && shape.grid.size() == 2 ? shape.grid[0] : many_nodes ? placement.per_node : 1;
  const int fewest = unit == 1 ? 6 : 3;
  const int units = shape.ranks / unit;
  if (units <= fewest + 2) {
    if (!small_enough(family, shape)) return too_large(family, shape);
    return walked(family, shape, placement);
  }
  std::array<std::vector<int64_t>, 3> samples;
  Profile out;
  for (int i = 0; i < 3; ++i) {
    Shape fewer = shape;
    fewer.ranks = (fewest + i) * unit + shape.ranks % unit;
    fewer.root = shape.root % unit;
    if (!fewer.grid.empty()) fewer.grid = {unit, fewest + i};
    if (!small_enough(family, fewer)) return too_large(family, shape);
    out = walked(family, fewer, placement);
    samples[static_cast<size_t>(i)] = listed(out);
  }
  const int64_t x = units - fewest;
  size_t at = 0;
  counts(out, [&](int64_t& count) {
    const int64_t first = samples[1][at] - samples[0][at];
    const int64_t second = samples[2][at] - samples[1][at] - first;
    count = samples[0][at] + x * first + x * (x - 1) / 2 * second;
    ++at;
  });
  return out;
}

}  // namespace

Result<Profile> profile(std::string_view name, const Shape& shape, const Placement& placement) {
  const Family* family = family_named(name);
  if (family == nullptr || !refusal(*family, shape).empty()) return make(name, shape).error();
  if (family->growth == Growth::slow) return walked(*family, shape, placement);
  if (family->formula != nullptr) {
    if (const auto formula = family->formula(shape, placement)) return *formula;
  }
  if (family->lines != nullptr && !rooted(shape.collective)) {
    if (const auto lines = family->lines(shape)) return profile_of_grid(shape, placement, *lines);
  }
  return continued(*family, shape, placement);
}

}  // namespace gyre::topo
