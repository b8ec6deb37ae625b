// A TCP connection beside a connection of another kind: it carries the greeting, and lives as long as the connection, because it
// is by its end that a dead peer is known. The kernel closes the sockets of a process that is gone, and answers keepalive probes for one
// that is only stopped; a host that is gone is told by probes without answer. No heartbeat of ours.
//
//   frame: | u32 magic | u32 kind | u32 bytes | bytes |      bytes <= max_frame_bytes, integers as they lie in memory (little-endian)
//
// Never blocks. It must not know what frames mean.
#pragma once
#include <array>
#include <chrono>
#include <optional>
#include <span>
#include <string>

#include "transport/net_device.h"
#include "transport/private_fd.h"

namespace gyre::transport {

inline constexpr size_t max_frame_bytes = 64 * 1024;

struct Frame {
  uint32_t kind = 0;
  std::string bytes;
};

class Control {
 public:
  Control() = default;
  /// An accepted connection. `silence`: after which a host is gone.
  Control(UniqueFd, std::chrono::seconds silence);
  /// Starts connecting.
  static Control to(const SocketAddress&, std::chrono::seconds silence);

  int fd() const { return fd_.get(); }
  /// Where to: of an accepted one, where from.
  const std::string& peer() const { return peer_; }
  void send(uint32_t kind, std::string_view bytes);
  /// Writes and reads what can be; the next whole frame.
  std::optional<Frame> receive();
  /// Says nothing more, which the peer takes for our end unless it was told before.
  void hang_up();
  /// Why nothing more will come; empty: it may.
  const std::string& ended() const { return ended_; }
  /// It ended because nobody listened there (any more).
  bool refused() const { return refused_; }
  /// It ended because nothing comes from there, or because the host there has forgotten it, which need not be the process's end.
  bool silent() const { return silent_; }
  /// Bytes came that are no frame of ours.
  bool stranger() const { return stranger_; }

 private:
  void flush();
  void read();
  void end(std::string why) {
    if (ended_.empty()) ended_ = std::move(why);
  }
  void end(int error);

  PrivateFd fd_;
  std::string peer_, out_, in_, ended_;
  bool connected_ = false, refused_ = false, stranger_ = false, silent_ = false;
};

struct ListeningSocket {
  PrivateFd fd;
  SocketAddress address;  ///< with its port
};
/// A connection sends without delay; it is probed after a second of silence, every second, so that a host that does not answer is known a
/// second before that limit. What it was sent may wait for ever: a peer that is stopped takes none, and its kernel answers.
void watch_host(int fd, std::chrono::seconds silence);
/// On a free port of this address.
Result<ListeningSocket> listen_at(const SocketAddress&);
/// The next connection, or none.
UniqueFd accept_at(const ListeningSocket&);

/// "10.0.0.1:4711", "[fe80::1%2]:4711"; without a port (0) the address alone
std::string text_of(const SocketAddress&);

/// What somebody shows to prove that he was given a listener's address.
using Cookie = std::array<char, 16>;
/// Bytes that nobody can guess.
void fill_random(std::span<char>);
uint64_t random_number();  ///< of that kind; not 0

}  // namespace gyre::transport
