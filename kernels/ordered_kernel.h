// The kernels of ordered.h. Four elements at a time where all pointers lie so that these are one access, else one. Written for nvcc;
// test/simt runs them on the host.
#pragma once
#include "kernels/ordered.h"
#include "kernels/stay_kernel.h"

namespace gyre::kernels {

template <class T>
struct alignas(4 * sizeof(T)) Four {
  T elements[4];
};

/// Values on their way, as floats.
template <int n>
struct Floats {
  float values[n];
};

template <class T, class Op>
class OrderedStep {
 public:
  GYRE_DEVICE explicit OrderedStep(const StepArgs& args)
      : args_(args), flags_(static_cast<uint32_t>(args.scalar >> 32)), factor_(float_of(static_cast<uint32_t>(args.scalar))) {}

  GYRE_DEVICE void run(Team team) const {
    size_t fours = 0;
    if (aligned()) {
      fours = args_.count / 4;
      GYRE_ROLLED
      for (size_t i = team.thread; i < fours; i += team.threads) step<4>(i * 4);
    }
    GYRE_ROLLED
    for (size_t i = fours * 4 + team.thread; i < args_.count; i += team.threads) step<1>(i);
  }

 private:
  GYRE_DEVICE bool has(uint32_t flag) const { return (flags_ & flag) != 0; }
  GYRE_DEVICE static bool lies(const void* pointer, bool wide) {
    return reinterpret_cast<uintptr_t>(pointer) % (wide ? sizeof(Four<float>) : sizeof(Four<T>)) == 0;  // null does, too
  }
  GYRE_DEVICE bool aligned() const {
    return lies(args_.sources[0], has(first_is_partial)) && lies(args_.sources[1], has(second_is_partial)) &&
           lies(args_.destinations[0], has(to_partial)) && lies(args_.destinations[1], has(to_partial));
  }

  template <int n>
  GYRE_DEVICE void step(size_t i) const {
    Floats<n> result = load<n>(args_.sources[0], i, has(first_is_partial), has(first_multiplied));
    if (args_.sources[1] != nullptr) {
      const Floats<n> second = load<n>(args_.sources[1], i, has(second_is_partial), has(second_multiplied));
      GYRE_UNROLL
      for (int k = 0; k < n; ++k) result.values[k] = computed(Op{}, result.values[k], second.values[k]);
    }
    store<n>(args_.destinations[0], i, result);
    if (args_.destinations[1] != nullptr) store<n>(args_.destinations[1], i, result);
  }

  /// Never fused with another.
  template <class Operation>
  GYRE_DEVICE static float computed(Operation operation, float a, float b) {
    return combine(operation, lane_of(a), lane_of(b)).elements[0];
  }

  template <int n>
  GYRE_DEVICE Floats<n> load(const void* from, size_t i, bool partial, bool multiplied) const {
    Floats<n> found;
    if (partial) {
      const auto* source = static_cast<const float*>(from) + i;
      if constexpr (n == 4) {
        const Pack pack = load_stream(reinterpret_cast<const Pack*>(source));
        memcpy(found.values, &pack, sizeof(pack));
      } else {
        found.values[0] = load_stream(source);
      }
    } else {
      const auto* source = static_cast<const T*>(from) + i;
      if constexpr (n == 4) {
        const Four<T> four = load_stream(reinterpret_cast<const Four<T>*>(source));
        GYRE_UNROLL
        for (int k = 0; k < n; ++k) found.values[k] = widen(four.elements[k]);
      } else {
        found.values[0] = widen(load_stream(source));
      }
    }
    GYRE_UNROLL
    for (int k = 0; k < n && multiplied; ++k) found.values[k] = computed(Prod{}, found.values[k], factor_);
    return found;
  }

  template <int n>
  GYRE_DEVICE void store(void* to, size_t i, const Floats<n>& result) const {
    if (has(to_partial)) {
      auto* destination = static_cast<float*>(to) + i;
      if constexpr (n == 4) {
        Pack pack;
        memcpy(&pack, result.values, sizeof(pack));
        store_stream(reinterpret_cast<Pack*>(destination), pack);
      } else {
        store_stream(destination, result.values[0]);
      }
    } else {
      auto* destination = static_cast<T*>(to) + i;
      if constexpr (n == 4) {
        Four<T> four;
        GYRE_UNROLL
        for (int k = 0; k < n; ++k) four.elements[k] = narrow<T>(result.values[k]);
        store_stream(reinterpret_cast<Four<T>*>(destination), four);
      } else {
        store_stream(destination, narrow<T>(result.values[0]));
      }
    }
  }

  const StepArgs& args_;
  uint32_t flags_;
  float factor_;
};

template <class T, class Op>
__global__ void __launch_bounds__(step_threads, 2) ordered_kernel(const StepArgs args) {
  OrderedStep<T, Op>(args).run({size_t{blockIdx.x} * blockDim.x + threadIdx.x, size_t{gridDim.x} * blockDim.x});
}

template <class T, class Op, class Bits>
__global__ void __launch_bounds__(step_threads, 1) ordered_stay_kernel(const StayArgs args) {
  do_items(args, [](const StayItem& item, Team team) {
    if (item.what == StayItem::What::copy)
      do_alone<Copy<Bits>>(item.step, team);
    else
      OrderedStep<T, Op>(item.step).run(team);
  });
}

/// Bits: an unsigned integer of T's width.
template <class T, class Bits>
inline constexpr OrderedRow ordered_row{{ordered_kernel<T, Sum>, ordered_kernel<T, Prod>},
                                        {ordered_stay_kernel<T, Sum, Bits>, ordered_stay_kernel<T, Prod, Bits>}};

}  // namespace gyre::kernels
