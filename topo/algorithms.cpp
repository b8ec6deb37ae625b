#include "topo/algorithms.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/text.h"
#include "schedule/fuse.h"
#include "schedule/meaning.h"
#include "topo/families.h"
#include "topo/profile_grid.h"

namespace gyre::topo {
namespace {

// Sets of collectives. In a scope of their own: elsewhere in this folder the same names are functions'.
struct Has {
  using enum Collective;

  static constexpr auto everything = all_collectives();
  static constexpr std::array unrooted{all_reduce, reduce_scatter, all_gather};
  static constexpr std::array rings{all_reduce, reduce_scatter, all_gather, broadcast, reduce};
  static constexpr std::array one_hop{all_reduce, reduce_scatter, all_gather, all_to_all};
  static constexpr std::array sums_and_broadcast{all_reduce, broadcast, reduce};
  static constexpr std::array blockwise{reduce_scatter, all_gather};
};

constexpr std::array table{
    Family{.name = "naive", .sentence = "a parameter server; the baseline", .collectives = Has::everything, .make = naive},
    Family{.name = "ring",
           .sentence = "around a ring; the least traffic",
           .collectives = Has::rings,
           .make = ring,
           .alternates = true,
           .orders = along_rings,
           .lines = ring_lines},
    Family{.name = "tree",
           .sentence = "up and down a binary tree; few hops",
           .collectives = Has::sums_and_broadcast,
           .make = tree,
           .growth = Growth::slow},
    Family{.name = "double_tree",
           .sentence = "two trees with half of the data each; few hops, all links busy",
           .collectives = Has::sums_and_broadcast,
           .make = double_tree,
           .channels = 2,
           .growth = Growth::slow},
    Family{.name = "halving_doubling",
           .sentence = "pairs at doubling distances; few hops, the least traffic",
           .collectives = Has::unrooted,
           .make = halving_doubling,
           .grid = GridUse::factors,
           .lines = halving_doubling_lines,
           .formula = profile_of_folded},
    Family{.name = "bucket",
           .sentence = "rings along the lines of a grid; for tori",
           .collectives = Has::unrooted,
           .make = bucket,
           .grid = GridUse::lines,
           .lines = bucket_lines},
    Family{.name = "hierarchical",
           .sentence = "inside of nodes, and between them a shard per local rank",
           .collectives = Has::unrooted,
           .make = hierarchical,
           .grid = GridUse::nodes,
           .lines = hierarchical_lines},
    Family{.name = "leaders",
           .sentence = "inside of nodes, and between them one rank of each",
           .collectives = Has::sums_and_broadcast,
           .make = leaders,
           .grid = GridUse::nodes,
           .alternates = true},
    Family{.name = "one_shot",
           .sentence = "everybody to everybody in one hop",
           .collectives = Has::one_hop,
           .make = one_shot,
           .growth = Growth::all_pairs,
           .lines = one_shot_lines,
           .formula = profile_of_all_to_all},
    Family{.name = "two_shot",
           .sentence = "everybody to everybody in two hops; the least traffic",
           .collectives = Has::sums_and_broadcast,
           .make = two_shot,
           .growth = Growth::all_pairs,
           .lines = direct_lines},
    Family{.name = "pat",
           .sentence = "messages of many blocks at doubling distances; few hops, the least traffic",
           .collectives = Has::blockwise,
           .make = pat,
           .formula = profile_of_pat},
    Family{.name = "chained_tree",
           .sentence = "chains inside of nodes, and between them two trees",
           .collectives = Has::sums_and_broadcast,
           .make = chained_tree,
           .grid = GridUse::nodes,
           .channels = 2,
           .orders = along_chains,
           .growth = Growth::slow},
};

// "only reduce_scatter and all_gather".
std::string only(std::span<const Collective> has) {
  std::string list;
  for (size_t i = 0; i < has.size(); ++i) {
    list += i == 0 ? "" : i + 1 == has.size() ? " and " : ", ";
    list += gyre::name(has[i]);
  }
  return "only " + list;
}

// What makes no sense for any family.
std::string senseless(const Shape& shape) {
  if (shape.ranks < 1) return fmt::format("{} ranks", shape.ranks);
  if (shape.channels < 1 || shape.channels > 64) return fmt::format("{} channels; 1 to 64 are possible", shape.channels);
  if (rooted(shape.collective) && (shape.root < 0 || shape.root >= shape.ranks)) {
    return fmt::format("root {} of {} ranks", shape.root, shape.ranks);
  }
  int64_t cells = 1;
  for (const int extent : shape.grid) {
    if (extent < 1) return fmt::format("a grid of {}", fmt::join(shape.grid, "x"));
    cells = std::min<int64_t>(cells * extent, INT32_MAX);
  }
  if (!shape.grid.empty() && cells != shape.ranks) return fmt::format("a grid of {} for {} ranks", fmt::join(shape.grid, "x"), shape.ranks);
  return {};
}

}  // namespace

std::span<const Family> families() { return table; }

const Family* family_named(std::string_view name) {
  for (const Family& family : table) {
    if (family.name == name) return &family;
  }
  return nullptr;
}

bool Family::has(Collective collective) const { return std::ranges::find(collectives, collective) != collectives.end(); }

bool lacks_nodes(const Family& family, const Shape& shape) {
  return family.grid == GridUse::nodes && family.has(shape.collective) && shape.ranks > 1 && shape.grid.size() != 2;
}

std::string refusal(const Family& family, const Shape& shape) {
  if (std::string reason = senseless(shape); !reason.empty()) return reason;
  if (!family.has(shape.collective)) return only(family.collectives);
  return lacks_nodes(family, shape) ? "needs a grid {ranks of a node, nodes}" : "";
}

Order order(const Family& family, const Shape& shape) {
  const int most_ranks = family.growth == Growth::slow ? 4096 : 1024;
  if (shape.ranks > most_ranks) return {fmt::format("ordered schedules of more than {} ranks are not looked at", most_ranks), true};
  const schedule::Schedule fused = schedule::fuse(family.make(shape));
  const schedule::Wiring wiring(fused);
  const schedule::Meaning meaning = schedule::interpret(fused, wiring, false, true);
  return {meaning.fault.empty() ? "" : "not in the order of ranks: " + meaning.fault, meaning.proof.sends_partial};
}

Result<schedule::Schedule> make(std::string_view name, const Shape& shape) {
  const Family* family = family_named(name);
  if (family == nullptr) {
    std::vector<std::string_view> names;
    names.reserve(table.size());
    for (const Family& f : table) names.push_back(f.name);
    const std::string_view near = nearest(name, names);
    return Error{Code::invalid_argument, fmt::format("there is no algorithm '{}': must be one of {}{}", name, fmt::join(names, ", "),
                                                     near.empty() ? "" : fmt::format("; did you mean {}?", near))};
  }
  if (const std::string reason = refusal(*family, shape); !reason.empty()) {
    return Error{Code::invalid_argument, fmt::format("{} has no {}: {}", name, text(shape), reason)};
  }
  return family->make(shape);
}

std::string text(const Shape& shape) {
  std::string out = fmt::format("{} for {} rank{}", gyre::name(shape.collective), shape.ranks, shape.ranks == 1 ? "" : "s");
  if (!shape.grid.empty()) out += fmt::format(" ({})", fmt::join(shape.grid, "x"));
  if (shape.ordered) out += ", ordered";
  if (shape.channels != 1) out += fmt::format(", {} channels", shape.channels);
  if (rooted(shape.collective)) out += fmt::format(", root {}", shape.root);
  return out;
}

}  // namespace gyre::topo
