#include "test/simt/fiber.h"

#include <sys/mman.h>

#include <cstdint>
#include <new>

// The sanitizers' functions, of which a program has those it was built with. This file is never instrumented itself.
extern "C" {
[[gnu::weak]] void* __tsan_get_current_fiber();
[[gnu::weak]] void* __tsan_create_fiber(unsigned flags);
[[gnu::weak]] void __tsan_destroy_fiber(void* fiber);
[[gnu::weak]] void __tsan_switch_to_fiber(void* fiber, unsigned flags);
[[gnu::weak]] void __tsan_acquire(void* address);
[[gnu::weak]] void __tsan_release(void* address);
[[gnu::weak]] void AnnotateIgnoreReadsBegin(const char* file, int line);
[[gnu::weak]] void AnnotateIgnoreReadsEnd(const char* file, int line);
[[gnu::weak]] void AnnotateIgnoreWritesBegin(const char* file, int line);
[[gnu::weak]] void AnnotateIgnoreWritesEnd(const char* file, int line);
[[gnu::weak]] void __sanitizer_start_switch_fiber(void** fake_stack, const void* stack, size_t bytes);
[[gnu::weak]] void __sanitizer_finish_switch_fiber(void* fake_stack, const void** stack, size_t* bytes);
[[gnu::weak]] void __asan_unpoison_memory_region(const volatile void* address, size_t bytes);
}

namespace gyre::simt {
namespace {

constexpr size_t guard_bytes = size_t{64} * 1024;  // a multiple of any page
constexpr size_t stack_bytes = size_t{256} * 1024;

/// Leaves `from`, to go on at `to`; returns when somebody comes back.
void change(Side& from, Side& to) {
  constexpr unsigned orders_nothing = 1;
  if (__sanitizer_start_switch_fiber != nullptr) __sanitizer_start_switch_fiber(&from.fake_stack, to.stack, to.stack_bytes);
  if (__tsan_switch_to_fiber != nullptr) __tsan_switch_to_fiber(to.tsan, orders_nothing);
  swapcontext(&from.context, &to.context);
}
/// The first thing on arrival; `left` is where one came from.
void arrive(void* fake_stack, Side& left) {
  if (__sanitizer_finish_switch_fiber != nullptr) __sanitizer_finish_switch_fiber(fake_stack, &left.stack, &left.stack_bytes);
}

}  // namespace

void order_release(void* address) {
  if (__tsan_release != nullptr) __tsan_release(address);
}
void order_acquire(void* address) {
  if (__tsan_acquire != nullptr) __tsan_acquire(address);
}

Unwatched::Unwatched(bool really) : really_(really && AnnotateIgnoreReadsBegin != nullptr) {
  if (!really_) return;
  AnnotateIgnoreReadsBegin(__FILE__, __LINE__);
  AnnotateIgnoreWritesBegin(__FILE__, __LINE__);
}
Unwatched::~Unwatched() {
  if (!really_) return;
  AnnotateIgnoreWritesEnd(__FILE__, __LINE__);
  AnnotateIgnoreReadsEnd(__FILE__, __LINE__);
}

void Fiber::make(void (*run)(void*), void* argument) {
  run_ = run;
  argument_ = argument;
  memory_ = mmap(nullptr, guard_bytes + stack_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory_ == MAP_FAILED) throw std::bad_alloc();
  mprotect(memory_, guard_bytes, PROT_NONE);  // a stack that runs over is seen
  char* stack = static_cast<char*>(memory_) + guard_bytes;
  inside_.stack = stack;
  inside_.stack_bytes = stack_bytes;
  if (__tsan_create_fiber != nullptr) inside_.tsan = __tsan_create_fiber(0);

  getcontext(&inside_.context);
  inside_.context.uc_stack.ss_sp = stack;
  inside_.context.uc_stack.ss_size = stack_bytes;
  inside_.context.uc_link = nullptr;
  const auto self = reinterpret_cast<uintptr_t>(this);  // makecontext hands on ints
  makecontext(&inside_.context, reinterpret_cast<void (*)()>(enter), 2, static_cast<unsigned>(self), static_cast<unsigned>(self >> 32));
}

Fiber::~Fiber() {
  if (memory_ == nullptr) return;
  if (__tsan_destroy_fiber != nullptr) __tsan_destroy_fiber(inside_.tsan);
  if (__asan_unpoison_memory_region != nullptr) __asan_unpoison_memory_region(inside_.stack, stack_bytes);
  munmap(memory_, guard_bytes + stack_bytes);
}

void Fiber::enter(unsigned low, unsigned high) {
  auto* self = reinterpret_cast<Fiber*>(uintptr_t{low} | (uintptr_t{high} << 32));
  arrive(nullptr, self->outside_);
  self->run_(self->argument_);
}

void Fiber::resume() {
  if (__tsan_get_current_fiber != nullptr) outside_.tsan = __tsan_get_current_fiber();
  change(outside_, inside_);
  Side left;
  arrive(outside_.fake_stack, left);
}

void Fiber::stop() {
  change(inside_, outside_);
  arrive(inside_.fake_stack, outside_);
}

}  // namespace gyre::simt
