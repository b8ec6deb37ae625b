// What goes over a TCP connection, integers as they lie in memory (little-endian). Who connects greets; the listener answers; then each
// side sends messages, and before it closes a goodbye, by which a peer that is done differs from one that is dead.
//
//   connects:  | greeting |          | header | bytes | header | bytes | … | goodbye |
//   listens:              | answer | header | bytes | …
#pragma once
#include <cstdint>

#include "transport/control.h"

namespace gyre::transport::tcp {

struct Header {
  uint32_t magic = 0;
  uint32_t bytes = 0;  ///< that follow
  uint64_t plan = 0;
};
static_assert(sizeof(Header) == 16);
inline constexpr uint32_t message_magic = 0x4d545947;  // "GYTM"
inline constexpr uint32_t goodbye_magic = 0x42545947;  // "GYTB"

inline constexpr size_t most_hello_bytes = 64;

struct Greeting {
  uint64_t magic = 0;
  Cookie cookie{};  ///< of the listener's address
  uint64_t slot_bytes = 0;
  uint32_t credits = 0;
  uint32_t hello_bytes = 0;
  char hello[most_hello_bytes] = {};
};
static_assert(sizeof(Greeting) == 104);
inline constexpr uint64_t greeting_magic = 0x316f'6c6c'6568'7467;  // "gthello1"

struct Answer {
  uint64_t magic = 0;
  uint64_t slot_bytes = 0;
  uint32_t credits = 0;
  uint32_t zero = 0;
};
static_assert(sizeof(Answer) == 24);
inline constexpr uint64_t answer_magic = 0x3172'6577'736e'6174;  // "tanswer1"

}  // namespace gyre::transport::tcp
