// A lane's arithmetic without a GPU: the functors of op.h and avg.h, which are NCCL's to the bit, on each element.
#pragma once
#include "kernels/avg.h"
#include "kernels/lane.h"

namespace gyre::kernels {

template <class Op, class T>
GYRE_DEVICE Lane<T> combine(Op op, Lane<T> a, Lane<T> b) {
  for (int i = 0; i < Lane<T>::count; ++i) a.elements[i] = op(a.elements[i], b.elements[i]);
  return a;
}

template <class T>
GYRE_DEVICE Lane<T> fused(Lane<T> x, Lane<T> s, Lane<T> r) {
  for (int i = 0; i < Lane<T>::count; ++i) {
    if constexpr (Small<T>)
      x.elements[i] = ScaleSum{}(x.elements[i], r.elements[i], widen(s.elements[i]));
    else
      x.elements[i] = ScaleSum{}(x.elements[i], r.elements[i], s.elements[i]);
  }
  return x;
}

}  // namespace gyre::kernels
