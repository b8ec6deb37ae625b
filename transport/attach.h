// Cross-memory attach: the kernel copies from another process's memory to this one's, without the other's help. Linux allows it between
// processes of one user that may trace each other; containers and security policies often don't, so it is tried first. Nothing is
// written there: should the other have ended, another process could have its number.
#pragma once
#include <sys/types.h>

#include <cstdint>

#include "base/result.h"

namespace gyre::transport {

/// What a process tells others so that they can attach to it: its number, and where a word lies that no other process has there, since
/// containers have processes of equal numbers.
struct ProcessAddress {
  uint64_t pid = 0, at = 0, word = 0;

  static ProcessAddress self();
};

/// Another process's memory, or one's own, by the addresses that it has there.
class Attached {
 public:
  /// Error: Code::remote, it can't be read from here, or is another; with the reason.
  static Result<Attached> open(const ProcessAddress&);

  /// Error: Code::remote, in words, with the count of bytes that were not copied.
  Status read(void* to, uint64_t from, size_t bytes) const;

 private:
  explicit Attached(pid_t pid) : pid_(pid) {}

  pid_t pid_;
};

}  // namespace gyre::transport
