// What crosses the wire of an RDMA connection, beside the messages themselves.
//
// A receive that is posted becomes a Credit, which its receiver writes into a ring in the sender's memory. The sender writes the message where
// the credit says, in one or more pieces, each of which ends with an immediate of 32 bits:
//
//    31..28  epoch     of the connection, modulo 16; after a failure it is the next one, and what comes late from the old one is nothing
//    27..20  entry     of the ring of credits: the sequence of the receive, modulo 256
//    19      too long  the message did not fit and was not written
//    18      0
//    17..12  piece     which one this is
//    11..6   0
//     5..0   last      number of the last piece; a message is complete when all pieces from 0 to this one are there
//
// How long a piece is, the completion says. Hosts of both byte orders: the ring is little endian, the immediate is what verbs makes of it.
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
constexpr uint32_t max_pieces = 64;

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
  uint8_t epoch = 0;  ///< modulo 16
  uint8_t entry = 0;
  bool too_long = false;
  uint8_t piece = 0;
  uint8_t last = 0;

  constexpr uint32_t bits() const {
    return uint32_t{epoch} << 28U | uint32_t{entry} << 20U | uint32_t{too_long} << 19U | uint32_t{piece} << 12U | uint32_t{last};
  }
  static constexpr Immediate of(uint32_t bits) {
    return {static_cast<uint8_t>(bits >> 28U), static_cast<uint8_t>(bits >> 20U), (bits >> 19U & 1U) != 0,
            static_cast<uint8_t>(bits >> 12U & 63U), static_cast<uint8_t>(bits & 63U)};
  }
};

}  // namespace gyre::transport::verbs
