// Seconds for a collective on memory that the ranks of a host all reach (schedule/direct.h). The price is the busiest rank's: its waits,
// what it shows and reads of what others show, and what it reads and writes of the ranks' buffers; or, where ranks share processors, the
// work of all of them. Only sums, products, quotients and comparisons of doubles, as cost.h and for the same reason.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "schedule/direct.h"
#include "topo/cost.h"

namespace gyre::topo {

/// How ranks reach each other's buffers: in shared heaps, by copies of these, or by system calls that read them.
enum class BufferAccess : uint8_t { heap, bounced, attached };
std::string_view name(BufferAccess);

/// What a form costs for blocks of `block_bytes`, between ranks that share so many processors; 0: each has one. In the price's parts,
/// `bytes[inside]` is what is shown, `computing` what is done on the ranks' buffers.
Price price(const schedule::Direct&, const DirectCosts&, double block_bytes, int processors, BufferAccess access = BufferAccess::heap);

/// A direct form of a call, beside the candidates that go by messages.
struct DirectCandidate {
  std::string_view family;  ///< it stands for
  std::string_view form;    ///< "staged", "mapped", "bounced" or "attached"
  Price price;
  std::string refused;  ///< why it has no price; empty: it has
  std::string_view when;
};

}  // namespace gyre::topo
