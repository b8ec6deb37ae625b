// What a kernel makes of its sources, in lanes, as NCCL's kernels do: the first source is the rank's own part, the others are added in
// order, each result rounded to the type.
//     one(x)        of the own part alone
//     two(x, y)     of the own part and the first that came
//     more(sum, y)  of that and of the next
//     last(sum)     where nothing is to come any more
#pragma once
#include <type_traits>

#include "kernels/lane.h"
// The GPU's instructions have no meaning to a host's compiler, nvcc's pass for the host included.
#if defined(__CUDA_ARCH__)
#include "kernels/lane_gpu.h"
#else
#include "kernels/lane_host.h"
#endif

namespace gyre::kernels {

/// Sum, Prod, Min, Max. Signed integers are given as unsigned, except to Min and Max.
template <class T, class Op>
struct Plain {
  using Element = T;
  static constexpr bool multiplies = false;
  GYRE_DEVICE explicit Plain(uint64_t /*scalar*/) {}
  GYRE_DEVICE Lane<T> one(Lane<T> x) const { return x; }
  GYRE_DEVICE Lane<T> two(Lane<T> x, Lane<T> y) const { return combine(Op{}, x, y); }
  GYRE_DEVICE Lane<T> more(Lane<T> sum, Lane<T> y) const { return combine(Op{}, sum, y); }
  GYRE_DEVICE Lane<T> last(Lane<T> sum) const { return sum; }
};

/// One source needs no operation: an unsigned integer of the element's width will do.
template <class Bits>
using Copy = Plain<Bits, Sum>;

/// The upper half of a product.
GYRE_DEVICE uint32_t high_product(uint32_t a, uint32_t b) { return static_cast<uint32_t>((uint64_t{a} * b) >> 32); }
GYRE_DEVICE uint64_t high_product(uint64_t a, uint64_t b) {
  __extension__ using Product = unsigned __int128;
  return static_cast<uint64_t>((Product{a} * b) >> 64);
}

/// The last hop of an integers' average: the wrapped sum divided by the number of ranks, truncated toward zero.
template <class T, class Unsigned>
struct Averaged : Plain<Unsigned, Sum> {
  using Wide = decltype(Unsigned{} + 0U);  // 32 bits at least
  // A GPU has no division; to multiply takes few instructions and registers. So this is the largest Wide over ranks; of bytes 65536 over
  // ranks, rounded up or one more, which is exact at once.
  Wide ranks, reciprocal;

  GYRE_DEVICE explicit Averaged(uint64_t scalar)
      : Plain<Unsigned, Sum>(scalar),
        ranks(static_cast<Wide>(scalar)),
        reciprocal(sizeof(T) == 1 ? 65536 / ranks + 1 : static_cast<Wide>(~Wide{0} / ranks)) {}

  GYRE_DEVICE Lane<Unsigned> last(Lane<Unsigned> sum) const {
    GYRE_UNROLL
    for (Unsigned& element : sum.elements) element = divided(element);
    return sum;
  }

 private:
  GYRE_DEVICE Unsigned divided(Unsigned sum) const {
    if constexpr (sizeof(T) == 1) return static_cast<Unsigned>(static_cast<T>(sum) * static_cast<int>(reciprocal) / 65536);
    const bool negative = std::is_signed_v<T> && (sum >> (8 * sizeof(T) - 1)) != 0;
    const Wide magnitude = negative ? static_cast<Unsigned>(Unsigned{0} - sum) : sum;
    Wide quotient = high_product(magnitude, reciprocal);  // or one less than it should be
    if (magnitude - quotient * ranks >= ranks) ++quotient;
    return static_cast<Unsigned>(negative ? Wide{0} - quotient : quotient);
  }
};

/// The own part is multiplied by a scalar on its way into the sum.
template <class T>
struct Premultiplied {
  using Element = T;
  static constexpr bool multiplies = true;
  Lane<T> scalar;

  GYRE_DEVICE explicit Premultiplied(uint64_t bits) : scalar(lane_with_bits<T>(bits)) {}
  GYRE_DEVICE Lane<T> one(Lane<T> x) const { return combine(Prod{}, x, scalar); }
  GYRE_DEVICE Lane<T> two(Lane<T> x, Lane<T> y) const { return fused(x, scalar, y); }
  GYRE_DEVICE Lane<T> more(Lane<T> sum, Lane<T> y) const { return combine(Sum{}, sum, y); }
  GYRE_DEVICE Lane<T> last(Lane<T> sum) const { return sum; }
};

/// A reduction of lanes as one of elements.
template <class R>
struct OnElements {
  using Unit = typename R::Element;
  R lanes;
  GYRE_DEVICE Unit one(Unit x) const { return lanes.one(lane_of(x)).elements[0]; }
  GYRE_DEVICE Unit two(Unit x, Unit y) const { return lanes.two(lane_of(x), lane_of(y)).elements[0]; }
  GYRE_DEVICE Unit more(Unit sum, Unit y) const { return lanes.more(lane_of(sum), lane_of(y)).elements[0]; }
  GYRE_DEVICE Unit last(Unit sum) const { return lanes.last(lane_of(sum)).elements[0]; }
};

/// A reduction of lanes as one of packs.
template <class R>
struct OnPacks {
  using Unit = Pack;
  using T = typename R::Element;
  R lanes;

  GYRE_DEVICE Pack one(const Pack& x) const {
    Lanes<T> out(x);
    GYRE_UNROLL
    for (int i = 0; i < Lanes<T>::count; ++i) out.lanes[i] = lanes.one(out.lanes[i]);
    return out.pack();
  }
  GYRE_DEVICE Pack two(const Pack& x, const Pack& y) const {
    Lanes<T> out(x);
    const Lanes<T> other(y);
    GYRE_UNROLL
    for (int i = 0; i < Lanes<T>::count; ++i) out.lanes[i] = lanes.two(out.lanes[i], other.lanes[i]);
    return out.pack();
  }
  GYRE_DEVICE Pack more(const Pack& sum, const Pack& y) const {
    Lanes<T> out(sum);
    const Lanes<T> other(y);
    GYRE_UNROLL
    for (int i = 0; i < Lanes<T>::count; ++i) out.lanes[i] = lanes.more(out.lanes[i], other.lanes[i]);
    return out.pack();
  }
  GYRE_DEVICE Pack last(const Pack& sum) const {
    Lanes<T> out(sum);
    GYRE_UNROLL
    for (int i = 0; i < Lanes<T>::count; ++i) out.lanes[i] = lanes.last(out.lanes[i]);
    return out.pack();
  }
};

}  // namespace gyre::kernels
