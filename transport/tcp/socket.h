// Addresses and sockets of the TCP transport, by the network interfaces that NCCL_SOCKET_IFNAME and NCCL_SOCKET_FAMILY choose.
#pragma once
#include <chrono>
#include <vector>

#include "transport/control.h"
#include "transport/net_device.h"

namespace gyre::transport::tcp {

/// Of the chosen interfaces, one of each; port 0. Error: none fits, with the rules that say so.
Result<std::vector<SocketAddress>> own_addresses();

/// A listener's address as bytes: its cookie and where it listens.
struct Card {
  Cookie cookie{};
  std::vector<SocketAddress> places;  ///< at most 16
};
std::string encode(const Card&);
Result<Card> decode(std::string_view);

/// Of a connected socket: so many bytes, or few more, may be on their way to whoever reads it, and few wait in it to be sent. By themselves
/// the kernel's buffers grow to many megabytes, and a sender would be done with messages that nobody wanted.
/// `room`: have buffers for as many from the beginning, where the system grants that: those that grow with need are found too small
/// by every burst of messages.
void bound_bytes_under_way(int fd, size_t bytes, bool room);
/// Of a connected socket: of messages that are read one by one every second is acknowledged, and not each one, as the kernel does by itself
/// where nothing goes the other way. Both sides' processors have work with an acknowledgement.
void acknowledge_every_second(int fd);
/// Starts connecting. Error: that it can't be, as the system says.
Result<PrivateFd> start_connecting(const SocketAddress&, std::chrono::seconds silence);
/// Whether data or a probe is without answer for so long that the host must be gone. A system call.
bool silent(int fd, std::chrono::seconds silence);

}  // namespace gyre::transport::tcp
