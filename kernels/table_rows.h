// A type's row of the tables of kernels: to name a kernel here is what makes the compiler make it. For table_*.cu only.
#pragma once
#include <type_traits>

#include "kernels/packet_kernel.h"
#include "kernels/stay_kernel.h"
#include "kernels/step_kernel.h"

namespace gyre::kernels {

/// A reduction in all shapes, and what becomes of one source alone.
#define GYRE_STEP_KERNEL(shape, sources, destinations, packs) \
  step_kernel<std::conditional_t<sources == 1, Alone, R>, sources, destinations, packs>,
template <class R, class Alone>
inline constexpr ShapeRow step_shapes{GYRE_STEP_SHAPES(GYRE_STEP_KERNEL)};
#undef GYRE_STEP_KERNEL

/// Sums and products wrap, so they run in the unsigned type of the same width.
template <class T, class Unsigned>
inline constexpr StepRow integer_steps{{
    step_shapes<Plain<Unsigned, Sum>, Copy<Unsigned>>,
    step_shapes<Plain<Unsigned, Prod>, Copy<Unsigned>>,
    step_shapes<Plain<T, Max>, Copy<Unsigned>>,
    step_shapes<Plain<T, Min>, Copy<Unsigned>>,
    step_shapes<Averaged<T, Unsigned>, Copy<Unsigned>>,
    step_shapes<Premultiplied<Unsigned>, Premultiplied<Unsigned>>,
}};

/// Bits: an unsigned integer of T's width.
template <class T, class Bits>
inline constexpr StepRow float_steps{{
    step_shapes<Plain<T, Sum>, Copy<Bits>>,
    step_shapes<Plain<T, Prod>, Copy<Bits>>,
    step_shapes<Plain<T, Max>, Copy<Bits>>,
    step_shapes<Plain<T, Min>, Copy<Bits>>,
    step_shapes<Premultiplied<T>, Premultiplied<T>>,
    step_shapes<Premultiplied<T>, Premultiplied<T>>,
}};

// The same of kernels that stay.
template <class T, class Unsigned>
inline constexpr StayRow integer_stays{
    stay_kernel<Plain<Unsigned, Sum>, Unsigned, false>,  stay_kernel<Plain<Unsigned, Prod>, Unsigned, false>,
    stay_kernel<Plain<T, Max>, Unsigned, false>,         stay_kernel<Plain<T, Min>, Unsigned, false>,
    stay_kernel<Averaged<T, Unsigned>, Unsigned, false>, stay_kernel<Premultiplied<Unsigned>, Unsigned, true>,
};
template <class T, class Bits>
inline constexpr StayRow float_stays{
    stay_kernel<Plain<T, Sum>, Bits, false>, stay_kernel<Plain<T, Prod>, Bits, false>,  stay_kernel<Plain<T, Max>, Bits, false>,
    stay_kernel<Plain<T, Min>, Bits, false>, stay_kernel<Premultiplied<T>, Bits, true>, stay_kernel<Premultiplied<T>, Bits, true>,
};

// And of those of packets.
template <class T, class Unsigned>
inline constexpr PacketRow integer_packets{
    packet_kernel<Plain<Unsigned, Sum>>, packet_kernel<Plain<Unsigned, Prod>>, packet_kernel<Plain<T, Max>>,
    packet_kernel<Plain<T, Min>>,        packet_kernel<Averaged<T, Unsigned>>, packet_kernel<Premultiplied<Unsigned>>,
};
template <class T>
inline constexpr PacketRow float_packets{
    packet_kernel<Plain<T, Sum>>, packet_kernel<Plain<T, Prod>>,   packet_kernel<Plain<T, Max>>,
    packet_kernel<Plain<T, Min>>, packet_kernel<Premultiplied<T>>, packet_kernel<Premultiplied<T>>,
};

}  // namespace gyre::kernels
