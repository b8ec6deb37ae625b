// How much memory a communicator takes on a rank, and how its slots are made to fit what is allowed. A pure function of what all ranks
// know, so that they fit alike. Counted are the slots of its connections, its part of the board and its scratch; not the user's memory,
// that of the shared heap among it, nor what the kernel, UCX and drivers have for themselves.
#pragma once
#include <cstddef>
#include <optional>
#include <vector>

#include "base/config.h"
#include "engine/facts.h"
#include "transport/transport.h"

namespace gyre::engine {

/// A rank's slots for a peer, all channels and both directions together, at most by default.
inline constexpr size_t most_pair_bytes = 4 << 20;
/// What the slots of a rank for all others should take at most by default.
inline constexpr size_t most_default_bytes = 256 << 20;

/// What a rank's slots for a peer take, without headers. Where the two ranks share memory they are the peer's, too; else it has as many.
size_t pair_bytes(size_t channels, const transport::Slots&);
/// What a rank of a communicator takes at most before it runs anything, with all headers and the board.
size_t connected_bytes(size_t ranks, size_t channels, const transport::Slots&);

/// The configuration with slots that fit: unless a rank has set them, fewer and then smaller ones where the default bounds or
/// GYRE_MEMORY_BYTES ask for it. The least GYRE_MEMORY_BYTES of all ranks counts, and is in the result. Error: what does not fit, and
/// what would.
Result<Config> within_memory(Config, const std::vector<Facts>&);
/// What a rank's bounce buffer takes: nothing where GYRE_MEMORY_BYTES leaves little.
size_t bounce_bytes(const Config&, size_t ranks);
/// What is left for scratch.
size_t scratch_room(const Config&, size_t ranks);

}  // namespace gyre::engine
