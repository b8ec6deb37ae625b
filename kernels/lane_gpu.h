// A lane's arithmetic with the GPU's instructions, as NCCL has it. They round to nearest, keep subnormals, let a NaN lose against a number
// in min and max, and have -0 < +0. Those named _rn are never fused with another; what is to be fused says so. 8-bit floats go through
// half, and saturate on their way back. CUDA's headers give each function its best instruction on each generation.
#pragma once
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>

#include "kernels/lane.h"

namespace gyre::kernels {

/// In what CUDA computes on two of T.
template <class T>
struct Native {
  using Type = __half2;
};
template <>
struct Native<Bfloat16> {
  using Type = __nv_bfloat162;
};
template <Small T>
using NativeType = typename Native<T>::Type;

template <Small8 T>
inline constexpr __nv_fp8_interpretation_t format_of = same_type<T, Float8e4m3> ? __NV_E4M3 : __NV_E5M2;

template <class To, class From>
GYRE_DEVICE To same_bits(const From& from) {
  static_assert(sizeof(To) == sizeof(From));
  To to;
  memcpy(&to, &from, sizeof(to));
  return to;
}

template <Small T>
GYRE_DEVICE NativeType<T> native(Lane<T> lane) {
  if constexpr (Small8<T>)
    return __half2(__nv_cvt_fp8x2_to_halfraw2(same_bits<__nv_fp8x2_storage_t>(lane), format_of<T>));
  else
    return same_bits<NativeType<T>>(lane);
}
template <Small T>
GYRE_DEVICE Lane<T> rounded(NativeType<T> value) {
  if constexpr (Small8<T>)
    return same_bits<Lane<T>>(__nv_cvt_halfraw2_to_fp8x2(value, __NV_SATFINITE, format_of<T>));
  else
    return same_bits<Lane<T>>(value);
}

template <class N>
GYRE_DEVICE N instruction(Sum, N a, N b) {
  return __hadd2_rn(a, b);
}
template <class N>
GYRE_DEVICE N instruction(Prod, N a, N b) {
  return __hmul2_rn(a, b);
}
template <class N>
GYRE_DEVICE N instruction(Min, N a, N b) {
  return __hmin2(a, b);
}
template <class N>
GYRE_DEVICE N instruction(Max, N a, N b) {
  return __hmax2(a, b);
}

GYRE_DEVICE uint32_t four_bytes(Sum, uint8_t /*type*/, uint32_t a, uint32_t b) { return __vadd4(a, b); }
GYRE_DEVICE uint32_t four_bytes(Min, uint8_t /*type*/, uint32_t a, uint32_t b) { return __vminu4(a, b); }
GYRE_DEVICE uint32_t four_bytes(Max, uint8_t /*type*/, uint32_t a, uint32_t b) { return __vmaxu4(a, b); }
GYRE_DEVICE uint32_t four_bytes(Min, int8_t /*type*/, uint32_t a, uint32_t b) { return __vmins4(a, b); }
GYRE_DEVICE uint32_t four_bytes(Max, int8_t /*type*/, uint32_t a, uint32_t b) { return __vmaxs4(a, b); }

template <class Op, class T>
GYRE_DEVICE T one_number(Op op, T a, T b) {
  return op(a, b);
}
GYRE_DEVICE float one_number(Sum, float a, float b) { return __fadd_rn(a, b); }
GYRE_DEVICE float one_number(Prod, float a, float b) { return __fmul_rn(a, b); }
GYRE_DEVICE float one_number(Min, float a, float b) { return fminf(a, b); }
GYRE_DEVICE float one_number(Max, float a, float b) { return fmaxf(a, b); }
GYRE_DEVICE double one_number(Sum, double a, double b) { return __dadd_rn(a, b); }
GYRE_DEVICE double one_number(Prod, double a, double b) { return __dmul_rn(a, b); }
GYRE_DEVICE double one_number(Min, double a, double b) { return fmin(a, b); }
GYRE_DEVICE double one_number(Max, double a, double b) { return fmax(a, b); }

template <class Op, class T>
GYRE_DEVICE Lane<T> combine(Op op, Lane<T> a, Lane<T> b) {
  if constexpr (Small<T>) {
    return rounded<T>(instruction(op, native(a), native(b)));
  } else if constexpr (sizeof(T) == 1 && !same_type<Op, Prod>) {
    return same_bits<Lane<T>>(four_bytes(op, T{}, same_bits<uint32_t>(a), same_bits<uint32_t>(b)));
  } else {
    GYRE_UNROLL
    for (int i = 0; i < Lane<T>::count; ++i) a.elements[i] = one_number(op, a.elements[i], b.elements[i]);
    return a;
  }
}

template <class T>
GYRE_DEVICE T one_fused(T x, T s, T r) {
  return static_cast<T>(x * s + r);
}
GYRE_DEVICE float one_fused(float x, float s, float r) { return __fmaf_rn(x, s, r); }
GYRE_DEVICE double one_fused(double x, double s, double r) { return __fma_rn(x, s, r); }

template <class T>
GYRE_DEVICE Lane<T> fused(Lane<T> x, Lane<T> s, Lane<T> r) {
  if constexpr (Small8<T>) {
    return combine(Sum{}, combine(Prod{}, x, s), r);
  } else if constexpr (Small<T>) {
    return rounded<T>(__hfma2(native(x), native(s), native(r)));
  } else {
    GYRE_UNROLL
    for (int i = 0; i < Lane<T>::count; ++i) x.elements[i] = one_fused(x.elements[i], s.elements[i], r.elements[i]);
    return x;
  }
}

}  // namespace gyre::kernels
