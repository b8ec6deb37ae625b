// The three control messages of a UCX connection, in one format: a listener's address (carried by the caller), the hello that the
// connecting side sends there, and the reply. What comes from outside is checked here (every length, a checksum), since UCX itself
// trusts a worker address that it is given. Knows nothing of UCX.
//
//   byte  0 magic (4)       4 kind (1), name_bytes (1), hello_bytes (1), unwatched (1)       8 id (4)        12 credits (4)
//        16 slot_bytes (8)  24 host (8)  32 process (4)  36 address_bytes (4)  40 checksum (4)  44 zero (4)
//        48 name, hello, worker address
//
// Integers are the host's; one of another byte order is refused by its magic.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "transport/transport.h"

namespace gyre::transport::ucx {

inline constexpr size_t max_hello_bytes = 64;
inline constexpr size_t max_name_bytes = 255;
inline constexpr size_t max_address_bytes = 32 * 1024;
inline constexpr size_t header_bytes = 48;
inline constexpr size_t max_message_bytes = header_bytes + max_name_bytes + max_hello_bytes + max_address_bytes;
/// Ids of listeners and connections are below this, since a wire tag has 22 bits for them.
inline constexpr uint32_t max_id = uint32_t{1} << 22;

enum class MessageKind : uint8_t { address = 1, hello = 2, reply = 3 };

struct Message {
  MessageKind kind = MessageKind::address;
  uint32_t id = 0;               ///< of the listener, or the tag id under which the sender receives
  Slots slots{};                 ///< the sender's
  bool unwatched = false;        ///< hello: UCX does not tell of a lost peer on this connection
  uint64_t host = 0;             ///< host_id() of the sender
  uint32_t process = 0;          ///< its pid
  std::string name{};            ///< host and process of the sender, for messages
  std::string hello{};           ///< at most 64 bytes
  std::string worker_address{};  ///< UCX's own bytes
};

Result<std::string> encode(const Message&);
Result<Message> decode(MessageKind expected, std::string_view bytes);

}  // namespace gyre::transport::ucx
