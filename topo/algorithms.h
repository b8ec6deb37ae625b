// The families of schedules. Each is a function from a shape to a Schedule and knows nothing of buffers, streams or sockets. What is to be
// known of a family stands here, as data: nobody asks for its name.
#pragma once
#include <optional>
#include <span>
#include <string_view>

#include "base/result.h"
#include "schedule/schedule.h"
#include "topo/channel_orders.h"
#include "topo/grid.h"
#include "topo/profile.h"
#include "topo/shape.h"

namespace gyre::topo {

/// What a shape's grid means to a family.
enum class GridUse : uint8_t {
  none,     ///< nothing
  lines,    ///< lines to go along
  factors,  ///< the same, but short ones are best: prime numbers of ranks
  nodes,    ///< {ranks of a node, nodes}, without which there is no schedule
};

/// How fast a schedule grows with the ranks, which bounds those that can be made only to be counted.
enum class Growth : uint8_t { slow, usual, all_pairs };

struct Family {
  std::string_view name;
  std::string_view sentence;  ///< for people who choose
  std::span<const Collective> collectives;
  schedule::Schedule (*make)(const Shape&);

  GridUse grid = GridUse::none;
  uint32_t channels = 1;    ///< of the schedule, for each of the shape
  bool alternates = false;  ///< odd channels go another way than even ones, where there are no lines
  /// Where channels may each have an order of their own, those; nothing: all have the same.
  std::vector<schedule::RankOrder> (*orders)(const ChannelOrders&, const Shape&, Rank root) = nullptr;
  Growth growth = Growth::usual;
  Lines (*lines)(const Shape&) = nullptr;
  /// The profile of shapes that have a formula of their own; nothing: this one has none.
  std::optional<Profile> (*formula)(const Shape&, const Placement&) = nullptr;

  bool has(Collective) const;
};

std::span<const Family> families();
/// Null when no family has this name.
const Family* family_named(std::string_view name);

/// Why there is no such schedule: a shape that makes no sense for anybody (ranks, channels, root, grid), or that the family lacks.
std::string refusal(const Family&, const Shape&);
/// The family has a schedule for this shape once that has a grid of nodes.
bool lacks_nodes(const Family&, const Shape&);
/// What is proven of a family's schedule for a shape that it does not refuse, in ordered numerics.
struct Order {
  std::string refusal;         ///< why its sums are not those of the canonical tree; empty: they are
  bool sends_partial = false;  ///< partial sums travel
};
Order order(const Family&, const Shape&);
/// The family's schedule, unfused. Error: invalid_argument with the refusal, or a family that does not exist, with the nearest name.
Result<schedule::Schedule> make(std::string_view family, const Shape&);

}  // namespace gyre::topo
