// A function with a stack of its own, which stops and goes on where it likes: a CUDA thread, to the host. Belongs to the OS thread that
// made it. The sanitizers are told of every switch; the thread sanitizer also that a switch orders nothing, so that to it fibers are
// threads.
#pragma once
#include <ucontext.h>

#include <cstddef>

namespace gyre::simt {

/// One side of a switch, as the system and the sanitizers know it.
struct Side {
  ucontext_t context{};
  void* tsan = nullptr;
  void* fake_stack = nullptr;
  const void* stack = nullptr;
  size_t stack_bytes = 0;
};

class Fiber {
 public:
  Fiber() = default;
  /// Nothing runs yet. `run` never returns.
  void make(void (*run)(void*), void* argument);
  /// Where it is stopped, for good: what lies on its stack is not destroyed.
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  /// Runs it until it stops.
  void resume();
  /// Stops it, from within.
  void stop();

 private:
  static void enter(unsigned low, unsigned high);

  Side inside_, outside_;
  void (*run_)(void*) = nullptr;
  void* argument_ = nullptr;
  void* memory_ = nullptr;
};

/// Orders for the thread sanitizer: what came before a release of an address before what comes after an acquire of it.
void order_release(void* address);
void order_acquire(void* address);

/// While it lives the thread sanitizer does not look at what this fiber reads and writes.
class Unwatched {
 public:
  explicit Unwatched(bool really);
  ~Unwatched();
  Unwatched(const Unwatched&) = delete;
  Unwatched& operator=(const Unwatched&) = delete;

 private:
  bool really_;
};

}  // namespace gyre::simt
