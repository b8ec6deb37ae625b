// For who waits for a stream that another communicator of the process may hold. After an error a collective holds its stream, and all that
// waits for that, other communicators' too, which are healthy and can't know. To go on without it would be to take for done what is not;
// but the program can end the one that has failed, once it knows which.
#pragma once
#include <chrono>

#include "plugin/nccl/comm.h"

namespace gyre::plugin::nccl {

class HeldUp {
 public:
  explicit HeldUp(const Comm& waiting) : waiting_(waiting) {}
  /// Every now and then while it waits. Once there are communicators that have failed, and it has waited for a second, a warning names
  /// them.
  void look();

 private:
  static constexpr std::chrono::seconds between{1};

  const Comm& waiting_;
  std::chrono::steady_clock::time_point next_ = std::chrono::steady_clock::now() + between;
  bool said_ = false;
};

}  // namespace gyre::plugin::nccl
