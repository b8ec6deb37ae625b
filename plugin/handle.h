// The 128 bytes that a listener gives to its sender, by way of NCCL. They come from the network, so all of it is checked.
//
//   byte  0 magic (8)   8 cookie (16)   24 family (2)   26 port, network order (2)   28 scope (4)   32 address (16)   48 checksum (8)
//        56 attempt (8): the sender's own note between two calls of connect   64 zero
#pragma once
#include <array>
#include <string>

#include "plugin/net.h"
#include "transport/control.h"

namespace gyre::plugin {

using transport::Cookie;
using transport::fill_random;
using transport::random_number;
using transport::text_of;

struct HandleContent {
  Cookie cookie{};
  transport::SocketAddress address;
};

void write_handle(Handle, const HandleContent&);
Result<HandleContent> read_handle(Handle);

uint64_t attempt_of(Handle);
void note_attempt(Handle, uint64_t attempt);

}  // namespace gyre::plugin
