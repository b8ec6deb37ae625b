// The loops of tree_kernels.h, compiled once for each instruction set with GYRE_ISA as its name; reduce_isa.cpp says what must not be here.
#include "kernels/avg.h"
#include "kernels/bfloat16_pair.h"
#include "kernels/reduce_isa.h"
#if defined(__F16C__)
#include "kernels/half_f16c.h"
#endif

namespace gyre::kernels {
namespace {

// In what the sums of T are made.
template <class T>
struct PartialOf {
  using Type = T;
};
template <Small T>
struct PartialOf<T> {
  using Type = float;
};
template <class T>
using Partial = typename PartialOf<T>::Type;

template <class T>
GYRE_INLINE Partial<T> lift(T x) {
  if constexpr (Small<T>)
    return widen(x);
  else
    return x;
}
template <class D, class P>
GYRE_INLINE D drop(P x) {
  if constexpr (Small<D>)
    return narrow<D>(x);
  else
    return x;
}

/// What an input is multiplied by, as a partial sum's type has it.
template <class P>
GYRE_INLINE P multiplier(Factor factor) {
  if constexpr (Whole<P>)
    return static_cast<P>(factor.whole);
  else
    return static_cast<P>(factor.real);
}

template <class Op, size_t n, bool scaled, class S>
GYRE_INLINE Partial<S> fold(const S* const* from, size_t i, Partial<S> s) {
  if constexpr (n == 1) {
    if constexpr (scaled) return static_cast<Partial<S>>(lift(from[0][i]) * s);
    return lift(from[0][i]);
  } else {
    return Op{}(fold<Op, n / 2, scaled>(from, i, s), fold<Op, n / 2, scaled>(from + n / 2, i, s));
  }
}

/// Over the one or the other of each pair.
template <class Op, size_t n, bool scaled, float half(uint32_t)>
GYRE_INLINE float fold_pairs(const Pair* const* from, size_t i, float s) {
  if constexpr (n == 1) {
    return scaled ? half(from[0][i]) * s : half(from[0][i]);
  } else {
    return Op{}(fold_pairs<Op, n / 2, scaled, half>(from, i, s), fold_pairs<Op, n / 2, scaled, half>(from + n / 2, i, s));
  }
}

/// As much of arrays of bfloat16 as pairs are; how much.
template <class Op, size_t n, bool scaled>
GYRE_INLINE size_t pairs(Bfloat16* out, const Bfloat16* const* sources, size_t count, float s) {
  const Pair* from[n];
  for (size_t k = 0; k < n; ++k) from[k] = reinterpret_cast<const Pair*>(sources[k]);
  auto* to = reinterpret_cast<Pair*>(out);
  GYRE_INDEPENDENT
  for (size_t i = 0; i < count / 2; ++i)
    to[i] = pair_of(fold_pairs<Op, n, scaled, upper>(from, i, s), fold_pairs<Op, n, scaled, lower>(from, i, s));
  return count - count % 2;
}

#if defined(__F16C__)
GYRE_INLINE void load_block(float* out, const Half* in) { widen_block(out, in); }
GYRE_INLINE void load_block(float* out, const float* in) {
  for (size_t k = 0; k < half_block; ++k) out[k] = in[k];
}
GYRE_INLINE void store_block(Half* out, const float* in) { narrow_block(out, in); }
GYRE_INLINE void store_block(float* out, const float* in) {
  for (size_t k = 0; k < half_block; ++k) out[k] = in[k];
}

template <class Op, size_t n, bool scaled, class S>
GYRE_INLINE void fold_block(float* out, const S* const* from, size_t i, float s) {
  if constexpr (n == 1) {
    load_block(out, from[0] + i);
    for (size_t k = 0; scaled && k < half_block; ++k) out[k] *= s;
  } else {
    float right[half_block];
    fold_block<Op, n / 2, scaled>(out, from, i, s);
    fold_block<Op, n / 2, scaled>(right, from + n / 2, i, s);
    for (size_t k = 0; k < half_block; ++k) out[k] = Op{}(out[k], right[k]);
  }
}

/// As much of the arrays as whole blocks are, by the processor's own conversions; how much.
template <class Op, size_t n, bool scaled, class S, class D>
GYRE_INLINE size_t blocks(D* out, const S* const* from, size_t count, float s) {
  size_t i = 0;
  for (; i + half_block <= count; i += half_block) {
    float sum[half_block];
    fold_block<Op, n, scaled>(sum, from, i, s);
    store_block(out + i, sum);
  }
  return i;
}
#endif

template <class Op, size_t n, bool scaled, class S, class D>
void tree(void* dst, const void* const* sources, size_t count, Factor factor) {
  const S* from[n];
  for (size_t k = 0; k < n; ++k) from[k] = static_cast<const S*>(sources[k]);
  auto* out = static_cast<D*>(dst);
  const auto s = multiplier<Partial<S>>(factor);
  size_t i = 0;
  if constexpr (same_type<S, Bfloat16> && same_type<D, Bfloat16>) i = pairs<Op, n, scaled>(out, from, count, s);
#if defined(__F16C__)
  if constexpr (same_type<S, Half> || same_type<D, Half>) i = blocks<Op, n, scaled>(out, from, count, s);
#endif
  GYRE_INDEPENDENT
  for (size_t k = i; k < count; ++k) out[k] = drop<D>(fold<Op, n, scaled>(from, k, s));
}

template <class Op, bool scaled, class S, class D>
inline constexpr TreeKernels::Trees trees{tree<Op, 2, scaled, S, D>, tree<Op, 4, scaled, S, D>, tree<Op, 8, scaled, S, D>};

struct First {
  template <class T>
  GYRE_INLINE T operator()(T a, T) const {
    return a;
  }
};
template <class S, class D>
void convert(void* dst, const void* from, size_t count) {
  tree<First, 1, false, S, D>(dst, &from, count, {});
}
template <class S, class D>
void convert_scaled(void* dst, const void* from, size_t count, Factor factor) {
  tree<First, 1, true, S, D>(dst, &from, count, factor);
}

/// T's own loops make wide types' sums; of integers, unsigned ones.
template <class Op, class T, bool scaled = false, class P = Partial<T>>
inline constexpr TreeKernels kernels_of{trees<Op, scaled, T, P>, trees<Op, scaled, T, T>, trees<Op, false, P, P>, trees<Op, false, P, T>,
                                        convert_scaled<T, P>,    convert<T, P>,           convert<P, T>};

using Row = std::array<TreeKernels, every_reduce_op_count>;

template <class T, class Unsigned>
inline constexpr Row integers{{kernels_of<Sum, Unsigned>, kernels_of<Prod, Unsigned>, kernels_of<Max, T>, kernels_of<Min, T>,
                               kernels_of<Sum, Unsigned>, kernels_of<Sum, Unsigned>}};
template <class T>
inline constexpr Row floats{
    {kernels_of<Sum, T>, kernels_of<Prod, T>, kernels_of<Max, T>, kernels_of<Min, T>, kernels_of<Sum, T, true>, kernels_of<Sum, T>}};

}  // namespace

constinit const TreeTable GYRE_ISA::tree_table{{GYRE_ROWS}};

}  // namespace gyre::kernels
