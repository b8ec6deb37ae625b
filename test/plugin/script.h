// What is sent over a connection, drawn from a seed by both of its ends alike: operations one after the other, as NCCL's are, each of one
// protocol, with some steps of each sender that shares the connection. Knows no plugin and no memory.
#pragma once
#include <optional>

#include "test/plugin/payload.h"

namespace gyre::test {

/// NCCL's protocols differ in how large their steps are, and in memory.
enum class Protocol { ll, ll128, simple };
inline constexpr Protocol protocols[] = {Protocol::ll, Protocol::ll128, Protocol::simple};

struct Traffic {
  uint64_t seed = 1;
  int operations = 10;
  int senders = 1;  ///< that share each connection, told apart by tags
  size_t simple_bytes = size_t{1} << 20;
  std::optional<Protocol> only = std::nullopt;

  /// The largest message of a protocol: NCCL's default buffers, of 8 steps each.
  size_t slot_bytes(Protocol protocol) const {
    return protocol == Protocol::simple ? simple_bytes : std::min(simple_bytes, protocol == Protocol::ll ? size_t{65536} : size_t{614400});
  }
};

class Script {
 public:
  Script(const Traffic& traffic, uint64_t connection) : traffic_(traffic), seed_(mixed(traffic.seed, connection)) {}

  int operations() const { return traffic_.operations; }
  Protocol protocol(int operation) const {
    return traffic_.only ? *traffic_.only : protocols[drawn(operation, 0, 0) % std::size(protocols)];
  }
  /// Of this sender in this operation: at least one, not the same for all.
  int steps(int operation, int sender) const { return 1 + static_cast<int>(drawn(operation, sender, 1) % 24); }
  /// No byte, all that fits, or anything between, more often few; whole lines where the protocol has such.
  size_t bytes(int operation, int sender, int step) const {
    const size_t most = traffic_.slot_bytes(protocol(operation));
    const uint64_t number = drawn(operation, sender, 2 + step);
    if (number % 16 == 0) return 0;
    if (number % 16 == 1) return most;
    const size_t some = (number >> 8) % ((most >> (number % 16 - 2)) + 1);
    return protocol(operation) == Protocol::simple ? some : some & ~size_t{15};
  }
  Place place(int operation, int sender, int step) const {
    return {mixed(seed_, static_cast<uint64_t>(sender)), static_cast<uint64_t>(operation) << 8 | static_cast<uint64_t>(step)};
  }
  /// For what an end may do as it likes.
  uint64_t whim(int operation, int step) const { return drawn(operation, 99, step); }

 private:
  uint64_t drawn(int operation, int sender, int what) const {
    return mixed(mixed(seed_, static_cast<uint64_t>(operation)), static_cast<uint64_t>(sender) << 32 | static_cast<uint64_t>(what));
  }

  Traffic traffic_;
  uint64_t seed_;
};

}  // namespace gyre::test
