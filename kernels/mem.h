// How kernels touch memory that the network or other threads touch too. All PTX is here and nowhere else, each instruction beside its
// twin, which a host's compiler takes: so the kernels run without a GPU (test/simt), under the sanitizers. Names of what only nvcc knows
// are here, too. It must not know: element types, operations, steps.
#pragma once
#include <cstddef>
#include <cstdint>

// GYRE_DEVICE: a function of the GPU's, or, to a host's compiler, of whoever runs kernels there.
#if defined(__CUDACC__)
#define GYRE_DEVICE __device__ __forceinline__
#define GYRE_UNROLL _Pragma("unroll")
#define GYRE_ROLLED _Pragma("unroll 1")
#else
#define GYRE_DEVICE [[gnu::always_inline]] inline
#define GYRE_UNROLL
#define GYRE_ROLLED
#endif

namespace gyre::kernels {

/// What one instruction loads or stores at most. Must lie at a multiple of its size.
struct alignas(16) Pack {
  uint32_t words[4];
};

/// On a host a pack elsewhere ends the program, as it ends a kernel.
inline void must_be_aligned(const Pack* pack) {
  if (reinterpret_cast<uintptr_t>(pack) % sizeof(Pack) != 0) __builtin_trap();
}

/// Read once, so not kept in the first-level cache; another's write may follow, so never through the read-only one.
GYRE_DEVICE Pack load_stream(const Pack* from) {
#if defined(__CUDA_ARCH__)
  Pack pack;
  asm volatile("ld.global.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(pack.words[0]), "=r"(pack.words[1]), "=r"(pack.words[2]), "=r"(pack.words[3])
               : "l"(__cvta_generic_to_global(from))
               : "memory");
  return pack;
#else
  must_be_aligned(from);
  return *from;
#endif
}
/// Less than a pack.
template <class T>
GYRE_DEVICE T load_stream(const T* from) {
  return *from;
}

/// Whoever sends this soon finds it in the second-level cache, which it leaves before what others keep there.
GYRE_DEVICE void store_stream(Pack* to, const Pack& pack) {
#if defined(__CUDA_ARCH__)
  asm volatile("st.global.cs.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(__cvta_generic_to_global(to)), "r"(pack.words[0]), "r"(pack.words[1]),
               "r"(pack.words[2]), "r"(pack.words[3])
               : "memory");
#else
  must_be_aligned(to);
  *to = pack;
#endif
}
template <class T>
GYRE_DEVICE void store_stream(T* to, T value) {
  *to = value;
}

/// A flag that the host or another GPU raises: what they wrote before is seen by what this thread, and those behind a barrier, read after.
GYRE_DEVICE uint64_t load_acquire(const uint64_t* flag) {
#if defined(__CUDA_ARCH__)
  uint64_t value = 0;
  asm volatile("ld.acquire.sys.global.u64 %0, [%1];" : "=l"(value) : "l"(__cvta_generic_to_global(flag)) : "memory");
  return value;
#else
  return __atomic_load_n(flag, __ATOMIC_ACQUIRE);
#endif
}

/// Raises a flag: who sees it sees what this thread, and those it met at a barrier, wrote before.
GYRE_DEVICE void store_release(uint64_t* flag, uint64_t value) {  // NOLINT(readability-non-const-parameter): it is written to
#if defined(__CUDA_ARCH__)
  asm volatile("st.release.sys.global.u64 [%0], %1;" ::"l"(__cvta_generic_to_global(flag)), "l"(value) : "memory");
#else
  __atomic_store_n(flag, value, __ATOMIC_RELEASE);
#endif
}

/// Halves of four bytes of data, below, and a flag of four: who finds the flag in a half has its data, whatever came before or comes after.
struct alignas(16) Packet {
  uint64_t halves[2];
};

/// Each half as one, in no order with anything else.
GYRE_DEVICE Packet load_packet(const Packet* from) {
  Packet packet;
#if defined(__CUDA_ARCH__)
  asm volatile("ld.relaxed.sys.global.v2.u64 {%0, %1}, [%2];"
               : "=l"(packet.halves[0]), "=l"(packet.halves[1])
               : "l"(__cvta_generic_to_global(from))
               : "memory");
#else
  for (int i = 0; i < 2; ++i) packet.halves[i] = __atomic_load_n(&from->halves[i], __ATOMIC_RELAXED);
#endif
  return packet;
}
GYRE_DEVICE void store_packet(Packet* to, const Packet& packet) {  // NOLINT(readability-non-const-parameter): it is written to
#if defined(__CUDA_ARCH__)
  asm volatile("st.relaxed.sys.global.v2.u64 [%0], {%1, %2};" ::"l"(__cvta_generic_to_global(to)), "l"(packet.halves[0]),
               "l"(packet.halves[1])
               : "memory");
#else
  for (int i = 0; i < 2; ++i) __atomic_store_n(&to->halves[i], packet.halves[i], __ATOMIC_RELAXED);
#endif
}

// What this GPU's threads change together, and nobody else reads or writes: what was there before. Not of the system's scope, in which
// memory of the host is changed as one only where the bus can do that; what the host is to see is stored by itself.
GYRE_DEVICE uint64_t add_to(uint64_t* number, uint64_t more) {  // NOLINT(readability-non-const-parameter): it is written to
#if defined(__CUDA_ARCH__)
  uint64_t before = 0;
  asm volatile("atom.acq_rel.gpu.global.add.u64 %0, [%1], %2;"
               : "=l"(before)
               : "l"(__cvta_generic_to_global(number)), "l"(more)
               : "memory");
  return before;
#else
  return __atomic_fetch_add(number, more, __ATOMIC_ACQ_REL);
#endif
}
GYRE_DEVICE uint64_t or_into(uint64_t* bits, uint64_t more) {  // NOLINT(readability-non-const-parameter): it is written to
#if defined(__CUDA_ARCH__)
  uint64_t before = 0;
  asm volatile("atom.acq_rel.gpu.global.or.b64 %0, [%1], %2;" : "=l"(before) : "l"(__cvta_generic_to_global(bits)), "l"(more) : "memory");
  return before;
#else
  return __atomic_fetch_or(bits, more, __ATOMIC_ACQ_REL);
#endif
}

/// On a host: notes that a kernel has failed, which goes on; defined by whoever runs kernels there.
void note_failure();

/// Ends all that the process has on the GPU, with an error.
GYRE_DEVICE void fail_kernel() {
#if defined(__CUDA_ARCH__)
  asm volatile("trap;");
#else
  note_failure();
#endif
}

/// Lets a kernel's other threads run; defined by whoever runs kernels on a host.
void let_others_run();

/// Between two looks at a flag.
GYRE_DEVICE void relax() {
#if defined(__CUDA_ARCH__)
  asm volatile("nanosleep.u32 32;");
#else
  let_others_run();
#endif
}

}  // namespace gyre::kernels
