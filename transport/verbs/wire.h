// What crosses the wire of an RDMA connection, beside the messages themselves.
//
// A receive that is posted becomes a Credit, which its receiver writes into a ring in the sender's memory. The sender writes the message where
// the credit says, in one or more pieces, each of which ends with an immediate of 32 bits:
//
//    31..18  0
//    17      mail      no piece: a Mail was written, where this path's mails go
//    16      too long  the message did not fit and was not written
//    15..8   entry     of the ring of credits: the sequence of the receive, modulo 256
//     7..4   piece     which one this is
//     3..0   last      number of the last piece; a message is complete when all pieces from 0 to this one are there
//
// How long a piece is, the completion says.
//
// When a path fails, both ends put their queue pair into the error state, see its last completions, and then tell each other by Mail, over
// a path that is left, which paths have failed and what has arrived. Who finds the same paths in the peer's mail as in his own knows that
// nothing of theirs is under way any more, and sends again what the peer does not have. So no piece arrives twice, in whatever order paths
// fail, and whoever sees it first; a path that fails meanwhile makes both say it anew. A path that was joined again is of a new generation.
#pragma once
#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace gyre::transport::verbs {

static_assert(std::endian::native == std::endian::little, "the ring of credits is written as it lies in memory");

constexpr uint32_t ring_entries = 256;  ///< receives under way
constexpr uint32_t max_rails = 8;
constexpr uint32_t max_paths = 16;
constexpr uint32_t max_pieces = max_paths;

/// One line of a processor's cache, written at once. Valid when `sequence` is the one awaited, which begins with 1.
struct alignas(64) Credit {
  uint64_t address = 0;
  uint64_t bytes = 0;
  uint64_t tag = 0;
  std::array<uint32_t, max_rails> keys{};  ///< of the memory, for each rail
  uint64_t sequence = 0;
};
static_assert(sizeof(Credit) == 64);

using CreditRing = std::array<Credit, ring_entries>;

struct Immediate {
  bool mail = false;
  bool too_long = false;
  uint8_t entry = 0;
  uint8_t piece = 0;
  uint8_t last = 0;

  constexpr uint32_t bits() const {
    return uint32_t{mail} << 17U | uint32_t{too_long} << 16U | uint32_t{entry} << 8U | uint32_t{piece} << 4U | uint32_t{last};
  }
  static constexpr Immediate of(uint32_t bits) {
    return {(bits >> 17U & 1U) != 0, (bits >> 16U & 1U) != 0, static_cast<uint8_t>(bits >> 8U), static_cast<uint8_t>(bits >> 4U & 15U),
            static_cast<uint8_t>(bits & 15U)};
  }
};

/// What an end of a connection knows of its failures and of what it has received.
struct alignas(64) Mail {
  uint64_t checksum = 0;  ///< of what follows: a later mail may be written while one is read, and is announced itself
  std::array<uint8_t, max_paths> failed{};  ///< by path, the last generation that has; the first one is 1
  uint64_t oldest = 0;                      ///< receives of which all before are complete
  std::array<uint16_t, ring_entries> pieces{};  ///< by entry, those of the receive under way that are there; all ones: it is complete
};

}  // namespace gyre::transport::verbs
