// The loops of reduce_host.h, compiled once for each instruction set with GYRE_ISA as its name (portable, avx2, avx512). Nothing here
// but the table may be visible to the linker: a function of the C++ library that got emitted here could be the copy that all others
// call, on processors without these instructions. So no std:: functions, and own ones are in an unnamed namespace or always_inline.
#include "kernels/reduce_isa.h"
#include "kernels/avg.h"
#include "kernels/bfloat16_pair.h"
#if defined(__AVX512BW__)
#include "kernels/bfloat16_avx512.h"
#endif
#if defined(__F16C__)
#include "kernels/half_f16c.h"
#endif
#if defined(__AVX2__)
#include <immintrin.h>
#endif

namespace gyre::kernels {
namespace {

template <class Op>
inline constexpr bool in_float = same_type<Op, Sum> || same_type<Op, Prod>;
template <class Op, class T>
constexpr bool by_block() {
#if defined(__AVX512BW__)
  return in_float<Op> && same_type<T, Bfloat16>;
#else
  return false;
#endif
}

template <class Op, class T>
void combine(void* dst, const void* a, const void* b, size_t count) {
  auto* out = static_cast<T*>(dst);
  const auto* left = static_cast<const T*>(a);
  const auto* right = static_cast<const T*>(b);
  if constexpr (by_block<Op, T>())
    return each_block(out, nullptr, left, right, count, Op{});
  else if constexpr (in_float<Op> && same_type<T, Bfloat16>)
    return each_pair(out, left, right, count, Op{});
#if defined(__F16C__)
  if constexpr (in_float<Op> && same_type<T, Half>) return each_half(out, left, right, count, Op{});
#endif
  GYRE_INDEPENDENT
  for (size_t i = 0; i < count; ++i) out[i] = Op{}(left[i], right[i]);
}

template <class Op, class T>
void combine_both(void* dst, void* other, const void* a, const void* b, size_t count) {
  auto* out = static_cast<T*>(dst);
  auto* out2 = static_cast<T*>(other);
  const auto* left = static_cast<const T*>(a);
  const auto* right = static_cast<const T*>(b);
  // g++ vectorises no loop that stores small types twice, and where vectors span two lines, two streams of them beside those that are read
  // take twice as long or more: then a piece that stays in the first-level cache is copied.
  constexpr size_t piece = 4096 / sizeof(T);
  const bool spans = count >= piece && reinterpret_cast<size_t>(dst) % 64 != 0 && dst != a && dst != b;
  if ((Small<T> && !by_block<Op, T>()) || spans) {
    for (size_t at = 0; at < count; at += piece) {
      const size_t n = count - at < piece ? count - at : piece;
      combine<Op, T>(out + at, left + at, right + at, n);
      __builtin_memcpy(out2 + at, out + at, n * sizeof(T));
    }
    return;
  }
  if constexpr (by_block<Op, T>()) return each_block(out, out2, left, right, count, Op{});
  GYRE_INDEPENDENT
  for (size_t i = 0; i < count; ++i) out[i] = out2[i] = Op{}(left[i], right[i]);
}

template <class T>
GYRE_INLINE typename Scalar<T>::Type scalar_of(Factor factor) {
  if constexpr (Whole<T>)
    return static_cast<T>(factor.whole);
  else
    return static_cast<typename Scalar<T>::Type>(factor.real);
}

template <class T>
void scale(void* dst, const void* x, size_t count, Factor factor) {
  auto* out = static_cast<T*>(dst);
  const auto* in = static_cast<const T*>(x);
  const auto s = scalar_of<T>(factor);
  GYRE_INDEPENDENT
  for (size_t i = 0; i < count; ++i) out[i] = Scale{}(in[i], s);
}

template <class T>
void scale_combine(void* dst, const void* x, const void* received, size_t count, Factor factor) {
  auto* out = static_cast<T*>(dst);
  const auto* in = static_cast<const T*>(x);
  const auto* sum = static_cast<const T*>(received);
  const auto s = scalar_of<T>(factor);
  GYRE_INDEPENDENT
  for (size_t i = 0; i < count; ++i) out[i] = ScaleSum{}(in[i], sum[i], s);
}

#if defined(__F16C__)
template <>
void scale<Half>(void* dst, const void* x, size_t count, Factor factor) {
  const auto* in = static_cast<const Half*>(x);
  const auto s = scalar_of<Half>(factor);
  each_half(static_cast<Half*>(dst), in, in, count, [s](float value, float) { return value * s; });
}

template <>
void scale_combine<Half>(void* dst, const void* x, const void* received, size_t count, Factor factor) {
  const auto s = scalar_of<Half>(factor);
  each_half(static_cast<Half*>(dst), static_cast<const Half*>(x), static_cast<const Half*>(received), count,
            [s](float value, float sum) { return odd_sum<uint32_t>(value * s, sum); });
}
#endif

template <class T>
void divide(void* dst, size_t count, uint64_t n) {
  auto* values = static_cast<T*>(dst);
  const Divide by{n};
  for (size_t i = 0; i < count; ++i) values[i] = by(values[i]);
}

using Row = std::array<Arithmetic, every_reduce_op_count>;

/// Sums and products wrap, so they run in the unsigned type of the same width.
template <class T, class Unsigned>
inline constexpr Row integers{{
    {combine<Sum, Unsigned>, nullptr, nullptr, nullptr, combine_both<Sum, Unsigned>},
    {combine<Prod, Unsigned>, nullptr, nullptr, nullptr, combine_both<Prod, Unsigned>},
    {combine<Max, T>, nullptr, nullptr, nullptr, combine_both<Max, T>},
    {combine<Min, T>, nullptr, nullptr, nullptr, combine_both<Min, T>},
    {combine<Sum, Unsigned>, nullptr, nullptr, divide<T>, combine_both<Sum, Unsigned>},
    {combine<Sum, Unsigned>, scale<Unsigned>, scale_combine<Unsigned>, nullptr, combine_both<Sum, Unsigned>},
}};

template <class T>
inline constexpr Row floats{{
    {combine<Sum, T>, nullptr, nullptr, nullptr, combine_both<Sum, T>},
    {combine<Prod, T>, nullptr, nullptr, nullptr, combine_both<Prod, T>},
    {combine<Max, T>, nullptr, nullptr, nullptr, combine_both<Max, T>},
    {combine<Min, T>, nullptr, nullptr, nullptr, combine_both<Min, T>},
    {combine<Sum, T>, scale<T>, scale_combine<T>, nullptr, combine_both<Sum, T>},
    {combine<Sum, T>, scale<T>, scale_combine<T>, nullptr, combine_both<Sum, T>},
}};

}  // namespace

// Whole lines past the caches, what is left of lines at both ends by byte.
void GYRE_ISA::copy_away(void* dst, const void* src, size_t bytes) {
  auto* to = static_cast<unsigned char*>(dst);
  const auto* from = static_cast<const unsigned char*>(src);
#if defined(__AVX2__)
  const size_t odd = (0 - reinterpret_cast<size_t>(to)) % 64;
  const size_t head = odd < bytes ? odd : bytes;
  __builtin_memcpy(to, from, head);
  to += head, from += head, bytes -= head;
  for (; bytes >= 64; to += 64, from += 64, bytes -= 64) {
#if defined(__AVX512F__)
    _mm512_stream_si512(reinterpret_cast<__m512i*>(to), _mm512_loadu_si512(from));
#else
    for (int half = 0; half < 64; half += 32) {
      _mm256_stream_si256(reinterpret_cast<__m256i*>(to + half), _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from + half)));
    }
#endif
  }
#endif
  __builtin_memcpy(to, from, bytes);
}

constinit const ArithmeticTable GYRE_ISA::table{{GYRE_ROWS}};

}  // namespace gyre::kernels
