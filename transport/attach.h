// Cross-memory attach: the kernel copies from another process's memory to this one's, without the other's help. Linux allows it between
// processes of one user that may trace each other; containers and security policies often don't, so it is tried first. Nothing is
// written there: should the other have ended, another process could have its number.
#pragma once
#include <cstddef>
#include <cstdint>

#include "base/result.h"

namespace gyre::transport {

/// What a process tells others so that they can attach to it: its number, and where a word lies that no other process has there, since
/// containers have processes of equal numbers, and numbers are used again.
struct ProcessAddress {
  uint64_t pid = 0, at = 0, word = 0;

  /// A forked process has a word of its own once it has called this.
  static ProcessAddress self();
};

/// Another process's memory, or one's own, by the addresses that it has there.
class Attached {
 public:
  /// Error: Code::remote, it can't be read from here, or is another; with the reason.
  static Result<Attached> open(const ProcessAddress&);

  /// What it read is that process's: its word is read last. Error: Code::remote, in words; some may have been copied.
  Status read(void* to, uint64_t from, size_t bytes) const;
  /// Whether its memory's first and last byte, of at least one, are of a kind that the kernel copies. Error: as read().
  Status reads_ends(uint64_t from, size_t bytes) const;

 private:
  explicit Attached(const ProcessAddress& address) : address_(address) {}

  ProcessAddress address_;
};

}  // namespace gyre::transport
