// What crosses the wire of an RDMA connection, beside the messages themselves.
//
// A receive that is posted becomes a Credit, which its receiver writes into a ring in the sender's memory. The sender writes the message
// where the credit says, in one or more pieces, each of which ends with an immediate of 32 bits:
//
//    31..28  lap       of the ring: how often it was gone through before, modulo 16
//    27..20  with      as bits, receives of the same group that are complete too, and whole
//    19      confirms  no piece: the receiver of this entry has the whole message (GYRE_IB_CONFIRM)
//    18      whole     the message is as long as its receive, however little of it comes with this
//    17      mail      no piece: a Mail was written, where this path's mails go
//    16      too long  the message did not fit and was not written
//    15..8   entry     of the ring of credits
//     7..4   piece     which one this is
//     3..0   last      number of the last piece; a message is complete when all pieces from 0 to this one are there
//
// How long a piece is, the completion says.
//
// When a path fails, both ends put their queue pair into the error state, see its last completions, and then tell each other by Mail, over
// a path that is left, which paths have failed and what has arrived. Who finds the same failures in the peer's mail as he knows himself
// knows that nothing of theirs is under way any more, and sends again what the peer does not have. So no piece arrives twice, in whatever
// order paths fail, and whoever sees it first; a path that fails meanwhile makes both say it anew.
//
// A path that has failed is tried again, as one of the next generation: each end makes a queue pair and offers its card by mail, joins the
// peer's when it has that, and says so; when both have, an empty write over it tells whether it carries, and only then messages do.
#pragma once
#include <array>
#include <atomic>
#include <bit>
#include <bitset>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "transport/transport.h"

namespace gyre::transport::verbs {

static_assert(std::endian::native == std::endian::little, "the ring of credits is written as it lies in memory");

constexpr uint32_t ring_entries = 256;  ///< receives under way
constexpr uint32_t max_rails = 8;
constexpr uint32_t max_paths = 16;
constexpr uint32_t max_pieces = max_paths;

/// A queue pair's end as the peer must know it. Bytes as they are sent.
struct PairCard {
  std::array<uint8_t, 16> gid{};
  uint32_t number = 0;
  uint32_t first_packet = 0;
  uint32_t mbit_per_s = 0;  ///< of its port
  uint16_t lid = 0;
  uint8_t mtu = 0;         ///< ibv_mtu
  uint8_t link_layer = 0;  ///< IBV_LINK_LAYER_...
};
static_assert(sizeof(PairCard) == 32);

/// One line of a processor's cache, written at once. Valid when `sequence` is the one awaited, which begins with 1.
struct alignas(64) Credit {
  uint64_t address = 0;
  uint64_t bytes = 0;
  uint64_t tag = 0;                        ///< 40 bits; above them the group
  std::array<uint32_t, max_rails> keys{};  ///< of the memory, for each rail
  uint64_t sequence = 0;

  /// Receives that are waited for together have sequences in a row, and may be told of by one immediate.
  using Group = Endpoint::Group;
  static constexpr uint64_t alone(uint64_t tag) { return tag | uint64_t{1} << 48U; }
  void set(uint64_t of_tag, Group group) { tag = of_tag | uint64_t{group.size} << 48U | uint64_t{group.place} << 56U; }
  uint64_t plain_tag() const { return tag & ((uint64_t{1} << 40U) - 1); }
  Group group() const { return {static_cast<uint8_t>(tag >> 48U & 15U), static_cast<uint8_t>(tag >> 56U & 7U)}; }  // a peer's word
};
constexpr uint32_t max_group = 8;
static_assert(sizeof(Credit) == 64);

using CreditRing = std::array<Credit, ring_entries>;

struct Immediate {
  uint8_t lap = 0;
  uint8_t with = 0;
  bool confirms = false;
  bool whole = false;
  bool mail = false;
  bool too_long = false;
  uint8_t entry = 0;
  uint8_t piece = 0;
  uint8_t last = 0;

  constexpr uint32_t bits() const {
    return uint32_t{lap} << 28U | uint32_t{with} << 20U | uint32_t{confirms} << 19U | uint32_t{whole} << 18U | uint32_t{mail} << 17U |
           uint32_t{too_long} << 16U | uint32_t{entry} << 8U | uint32_t{piece} << 4U | uint32_t{last};
  }
  static constexpr Immediate of(uint32_t bits) {
    const auto flag = [bits](unsigned at) { return (bits >> at & 1U) != 0; };
    const auto part = [bits](unsigned at, uint32_t most) { return static_cast<uint8_t>(bits >> at & most); };
    return {part(28, 15), part(20, 255), flag(19), flag(18), flag(17), flag(16), part(8, 255), part(4, 15), part(0, 15)};
  }
};

constexpr uint8_t entry_of(uint64_t sequence) { return static_cast<uint8_t>((sequence - 1) % ring_entries); }
constexpr uint8_t lap_of(uint64_t sequence) { return static_cast<uint8_t>((sequence - 1) / ring_entries % 16); }

/// What an end of a connection knows of a path.
struct PathNews {
  uint32_t failed = 0;   ///< the last generation that has; the first one is 1
  uint32_t offered = 0;  ///< the generation whose card this is
  uint32_t gone = 0;     ///< the generation whose device failed with what it may have had
  uint32_t joined = 0;   ///< the generation that was joined to the peer's card last
  PairCard card;
};

/// And what it has received.
struct alignas(64) Mail {
  uint64_t checksum = 0;                        ///< of what follows: a later mail may be written while one is read, and is announced itself
  uint64_t number = 0;                          ///< mails take different paths, and an older one may come later
  uint64_t oldest = 0;                          ///< receives of which all before are complete
  uint64_t goodbye = 0;                         ///< not 0: all is said
  std::array<PathNews, max_paths + 1> paths{};  ///< and of the detour, which fails once
  uint64_t offered = 0;                         ///< the peer's receives whose credits have come, in a row
  std::bitset<ring_entries> ahead;              ///< by entry, credits that have come and are not among these
  std::array<uint16_t, ring_entries> pieces{};  ///< by entry, those of the receive under way that are there; all ones: it is complete
  uint64_t unused = 0;                          ///< or a copy need not bring these bytes, which the checksum counts
};
static_assert(std::has_unique_object_representations_v<Mail>);

}  // namespace gyre::transport::verbs
