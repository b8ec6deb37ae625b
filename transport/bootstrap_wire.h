// What the bootstrap's connections carry. A connection opens with a Hello of fixed size, answered by a Reply of fixed size; so what a
// stranger sends is told apart by its first bytes, and no length of his is ever believed. After that, messages in both directions:
//
//   | u32 length | u8 kind | length bytes |      length <= max_payload, integers little-endian
//
// Knows bytes and file descriptors; what messages mean is for Root and Member.
#pragma once
#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/types.h"
#include "transport/private_fd.h"

namespace gyre::transport::bootstrap {

static_assert(std::endian::native == std::endian::little, "integers are sent as they lie in memory");

inline constexpr uint32_t wire_version = 1;
inline constexpr size_t max_payload = size_t{16} << 20;
inline constexpr size_t max_text = 4096;  ///< of a description or a failure; what is longer is cut

/// Which process; for messages that say who died.
struct Process {
  uint32_t pid = 0;
  std::array<char, 60> host{};  ///< ends in a zero

  static Process self();
  std::string text(Rank) const;  ///< "rank 2 (host sun, pid 4711)"
};

/// From a rank to rank 0.
struct Hello {
  static constexpr std::array<char, 8> expected_magic{'g', 'y', 'r', 'e', 'j', 'o', 'i', 'n'};
  std::array<char, 8> magic = expected_magic;
  uint32_t version = wire_version;
  Rank rank = 0;
  int32_t size = 0;
  uint32_t reserved = 0;
  uint64_t job = 0;
  uint64_t nonce = 0;  ///< the same in all hellos of one join(), which may reach rank 0 by several addresses
  Process process;
};
static_assert(sizeof(Hello) == 104);

enum class Answer : uint32_t { accepted = 1, other_job = 2, refused = 3 };

/// From rank 0 to a rank.
struct Reply {
  static constexpr std::array<char, 8> expected_magic{'g', 'y', 'r', 'e', 'h', 'o', 's', 't'};
  std::array<char, 8> magic = expected_magic;
  uint32_t version = wire_version;
  Answer answer = Answer::accepted;
  Process process;               ///< rank 0's
  std::array<char, 176> text{};  ///< why refused; ends in a zero
};
static_assert(sizeof(Reply) == 256);

/// Up: from a rank to rank 0. Down: from rank 0 to a rank.
enum class Kind : uint8_t {
  start = 1,  ///< down: all have joined
  gather,     ///< up: bytes for all_gather
  part,       ///< down: u32 rank, its bytes
  describe,   ///< up: u64 call, u64 plan, u8 urgent, u32 number of pairs, their five u64, text
  ask,        ///< down: in which call are you?
  fail,       ///< both: u32 code, text
  goodbye,    ///< up: I leave
  left,       ///< down: u32 rank has left; nothing follows when that is rank 0
  recall,     ///< down: u64 question: which calls have you made?
  history,    ///< up: u64 question, calls (bootstrap_history.h); before goodbye unasked
  no_call,    ///< up: what was described is over
  give_up,    ///< up: u64 number of an all_gather, from 1, that this rank waits for no more, text of how long it has
  no_parts,   ///< down: u64 number of an all_gather that has ended without parts, for all ranks, text of why
  stay_away,  ///< up: bytes for each all_gather from now on, to which this rank does not come
};

struct Message {
  Kind kind;
  std::string payload;
};
/// Shared: one message waits in the queues of many connections.
using SharedMessage = std::shared_ptr<const Message>;

template <class T>
void put(std::string& payload, T value) {
  std::array<char, sizeof(T)> bytes;
  std::memcpy(bytes.data(), &value, sizeof(T));
  payload.append(bytes.data(), bytes.size());
}
/// The next integer, taken off the front; empty when there is none.
template <class T>
std::optional<T> take(std::string_view& payload) {
  if (payload.size() < sizeof(T)) return std::nullopt;
  T value;
  std::memcpy(&value, payload.data(), sizeof(T));
  payload.remove_prefix(sizeof(T));
  return value;
}

/// One end of a connection after the hello: a queue of outgoing messages and the bytes of an incoming one. Never blocks. One thread.
class Connection {
 public:
  Connection() = default;
  explicit Connection(PrivateFd fd);

  int fd() const { return fd_.get(); }
  bool open() const { return static_cast<bool>(fd_); }
  bool has_unsent() const { return !unsent_.empty(); }
  void close();
  /// Ends our direction: the other side sees the end after all that was sent.
  void shut_down() const;

  void send(SharedMessage);
  /// Writes what the socket takes; true when that was something. After an error nothing more is sent; receive() will tell why.
  bool flush();
  /// Appends the messages that have arrived whole. Returns why there will be no more ("its connection closed"), or nothing.
  std::optional<std::string> receive(std::vector<Message>&);

  /// A stopped process stops reading: its window closes, and TCP_USER_TIMEOUT would call that a dead host. So that limit is lifted
  /// while much is under way. True: it is lifted, call again within a second or so.
  bool patient();

 private:
  PrivateFd fd_;
  std::deque<SharedMessage> unsent_;
  size_t front_sent_ = 0;  ///< bytes of the front message, header included
  bool patient_ = false;
  std::string arrived_;
};

}  // namespace gyre::transport::bootstrap
