// The 128 bytes that a listener gives to its sender, by way of NCCL. They come from the network, so all of it is checked.
//
//   byte  0 magic (8)   8 cookie (16)   24 family (2)   26 port, network order (2)   28 scope (4)   32 address (16)   48 checksum (8)
//        56 attempt (8): the sender's own note between two calls of connect   64 zero
#pragma once
#include <array>
#include <string>

#include "plugin/net.h"

namespace gyre::plugin {

/// What a sender shows to prove that it was given the handle.
using Cookie = std::array<char, 16>;

struct HandleContent {
  Cookie cookie{};
  transport::SocketAddress address;
};

void write_handle(Handle, const HandleContent&);
Result<HandleContent> read_handle(Handle);

uint64_t attempt_of(Handle);
void note_attempt(Handle, uint64_t attempt);

/// "10.0.0.1:4711", "[fe80::1%2]:4711"; without a port (0) the address alone
std::string text_of(const transport::SocketAddress&);
/// Bytes that nobody can guess.
void fill_random(std::span<char>);
uint64_t random_number();  ///< of that kind; not 0

}  // namespace gyre::plugin
