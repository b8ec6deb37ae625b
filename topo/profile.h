// What a schedule costs whatever its size: counts of messages, chunks and steps, taken once, from which cost.h makes seconds in constant
// time. Two kinds of counts decide: what must happen one after the other (the critical path of one slice), and what one port or processor
// must do in all. Whole numbers throughout, so that every rank of every machine counts alike.
#pragma once
#include <array>
#include <cstdint>
#include <string_view>

#include "base/result.h"
#include "schedule/schedule.h"
#include "topo/shape.h"

namespace gyre::topo {

/// The two kinds of links: between ranks of a node, and between nodes.
inline constexpr size_t inside = 0;
inline constexpr size_t between = 1;
inline constexpr size_t link_kinds = 2;

/// Which ranks share a node: rank r is on node r / per_node.
struct Placement {
  int per_node = 0;  ///< 0: all ranks on one node

  int node(Rank rank) const { return per_node > 0 ? rank / per_node : 0; }
  size_t link(Rank a, Rank b) const { return node(a) == node(b) ? inside : between; }
  int nodes(int ranks) const { return per_node > 0 ? (ranks + per_node - 1) / per_node : 1; }
  bool operator==(const Placement&) const = default;
};

/// Work, counted: of a path, one thing after the other; or of a processor, in all. Chunks are those of the schedule, of one slice.
struct Tally {
  std::array<int64_t, link_kinds> hops{};     ///< latencies of messages
  std::array<int64_t, link_kinds> port{};     ///< chunks through ports, where links have ports
  std::array<int64_t, link_kinds> written{};  ///< chunks written by processors, where these move the bytes
  std::array<int64_t, link_kinds> ends{};     ///< messages sent or received
  int64_t reduced = 0;                        ///< chunks times further operands
  int64_t copied = 0;                         ///< chunks written to own memory without reducing
  int64_t steps = 0;

  // Here, where callers see them: a walk of 100,000 ranks adds millions.
  Tally& operator+=(const Tally& other) {
    return pairwise(other, [](int64_t& own, int64_t others) { own += others; });
  }
  Tally& operator-=(const Tally& other) {
    return pairwise(other, [](int64_t& own, int64_t others) { own -= others; });
  }
  template <class Each>
  Tally& pairwise(const Tally& other, Each each) {
    for (size_t link = 0; link < link_kinds; ++link) {
      each(hops[link], other.hops[link]), each(port[link], other.port[link]);
      each(written[link], other.written[link]), each(ends[link], other.ends[link]);
    }
    each(reduced, other.reduced), each(copied, other.copied), each(steps, other.steps);
    return *this;
  }
  friend Tally operator+(Tally a, const Tally& b) { return a += b; }
  friend Tally operator-(Tally a, const Tally& b) { return a -= b; }
  friend Tally operator*(Tally a, int64_t times);
  bool operator==(const Tally&) const = default;
};

/// Latencies of messages over links of a kind, and chunks through their ports.
inline Tally hops_over(size_t link, int64_t hops, int64_t chunks) {
  Tally out;
  out.hops[link] = hops;
  out.port[link] = chunks;
  return out;
}
/// Takes the work, if it is more, in place of the busiest by bytes, and by messages.
void take_busiest(std::array<Tally, 2>&, const Tally& work);
/// The larger of each count.
Tally most_of_each(Tally, const Tally&);

/// Which of two paths counts as the longer cannot be said without costs; so the longest is kept for each thing that may weigh most.
enum class Longest : uint8_t { network_hops, local_hops, network_chunks, local_chunks, processing };
inline constexpr size_t measures = 5;
/// Weighs the measure's own count most, then all others in a fixed order.
bool less(const Tally&, const Tally&, Longest);

/// The busiest of the resources of a kind.
struct Busiest {
  int64_t chunks = 0;  ///< through it in all
  Tally around;        ///< the shortest way to its first use, and from its last use to the end

  bool operator==(const Busiest&) const = default;
};

struct Profile {
  uint32_t chunks = 1;           ///< of a block
  uint32_t longest_message = 1;  ///< chunks in the longest message, which must fit a slot
  uint32_t channels = 1;         ///< of the schedule: connections between two ranks

  std::array<int64_t, link_kinds> widest{};    ///< chunks in the longest message over such a link
  std::array<int64_t, link_kinds> messages{};  ///< of one slice, over the connection that has the most
  /// Times that one program waits for messages which their senders send no sooner than it begins to wait, with all slices of a round, so
  /// that nothing else is under way meanwhile. Of the program with the most, between nodes first.
  std::array<int64_t, link_kinds> waits{};
  std::array<Tally, measures> path{};      ///< the longest from the beginning to the end, by each measure
  std::array<Tally, measures> span{};      ///< the longest that one program takes from its first step to its last
  std::array<Busiest, link_kinds> port{};  ///< of one rank, one direction
  Busiest node_port;                       ///< of a node towards other nodes, one direction
  std::array<Tally, 2> processor;          ///< of the rank with the most bytes to move and reduce, and with the most messages
  Tally node_processor;                    ///< and on the ranks of one node together

  bool operator==(const Profile&) const = default;
};

/// Walks a schedule. Time and memory grow with its steps. The schedule must be one that runs (schedule/verify.h).
Profile profile(const schedule::Schedule&, const Placement&);

/// The profile of a family's fused schedule without the schedule, where that would be too large: for 100,000 ranks well under a second.
/// Trees, which are small, are walked; grids have formulas; what grows evenly with the nodes is continued from a few small numbers of
/// nodes. test/topo/profile_test.cpp says how near these are to the walk. Error: as topo::make.
Result<Profile> profile(std::string_view family, const Shape&, const Placement&);

}  // namespace gyre::topo
