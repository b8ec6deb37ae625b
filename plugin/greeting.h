// What two ends of a connection say to each other before it exists, over Control (C: the connecting side, A: the accepting one):
//
//   C hello: the cookie, who I am, a number for this attempt     A offer: who I am, the ways that I have to you
//   C attempt: this way                                          A address: connect there      (or A refusal: why; C tries the next way)
//   … C connects that way, with the attempt's number as its hello …
//   C joined: that way has come to its end, so A takes it, and no other attempt will follow    either side, at the end: farewell
//
// What can't be read is an error that says so; no length from outside is believed.
#pragma once
#include <optional>
#include <string>
#include <string_view>

#include "plugin/handle.h"

namespace gyre::plugin {

enum class Word : uint32_t { hello = 1, offer, attempt, address, refusal, joined, farewell };

/// Ways between two processes: through shared memory, by UCX's networks, by verbs. The numbers are on the wire.
enum class WayKind : uint32_t { in_place = 0, by_copies = 1, network = 2, verbs = 3 };
inline constexpr uint32_t way_kinds = 4;
/// Within a host only.
inline constexpr bool is_local(WayKind way) { return way == WayKind::in_place || way == WayKind::by_copies; }

/// Which of its memory this process shares with which others, by which rules it chooses, and how it is called.
struct Identity {
  uint64_t boot = 0, pids = 0, ipc = 0, shm = 0;  ///< equal: the same kernel, pid namespace, IPC namespace, /dev/shm; 0: unknown
  uint64_t probe_address = 0, probe_value = 0;    ///< what is to be found in its memory
  uint64_t tuner_file = 0;                        ///< what its GYRE_TUNER_FILE has (TunerFile::hash)
  uint32_t pid = 0;
  std::string name{};  ///< host, process and device, for messages

  static Identity self(std::string_view device, uint64_t tuner_file = 0);
  /// Whether memory of that process can be had at all; and whether the kernel lets us read it in place.
  bool shares_memory_with(const Identity& other) const;
  bool may_read(const Identity& other) const;
};

struct Hello {
  Cookie cookie{};
  uint64_t number = 0;
  Identity from;
};
struct Offer {
  uint32_t ways = 0;  ///< bit: WayKind
  Identity from;
};

std::string encode(const Hello&);
std::string encode(const Offer&);
Result<Hello> decode_hello(std::string_view);
Result<Offer> decode_offer(std::string_view);
/// An attempt is a way; a refusal is one and why.
std::string encode_refusal(WayKind, std::string_view why);
inline std::string encode_attempt(WayKind way) { return encode_refusal(way, {}); }
/// Takes the way off the front; empty: there is none.
std::optional<WayKind> decode_way(std::string_view&);

}  // namespace gyre::plugin
