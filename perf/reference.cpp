#include "perf/reference.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "base/hash.h"

namespace gyre::perf {
namespace {

uint64_t random(size_t element, Rank rank) {
  return mix(element * 0x9e3779b97f4a7c15 + static_cast<uint64_t>(rank) * 0xd1342543de82ef95 + 1);
}

// A binary floating-point format by its field widths; bits above the mantissa are exponent, then sign.
struct Format {
  int exponent_bits;
  int mantissa_bits;
  int largest;  // sums of absolute values up to here are exact

  int bias() const { return (1 << (exponent_bits - 1)) - 1; }
  uint64_t implicit_one() const { return uint64_t{1} << mantissa_bits; }
  double decode(uint64_t bits) const {
    const uint64_t mantissa = bits & (implicit_one() - 1);
    const int exponent = static_cast<int>(bits >> mantissa_bits) & ((1 << exponent_bits) - 1);
    const double sign = (bits >> (mantissa_bits + exponent_bits)) != 0 ? -1 : 1;
    if (exponent_bits + mantissa_bits == 7 && mantissa_bits == 3) {  // e4m3 has no infinity
      if ((bits & 0x7f) == 0x7f) return NAN;
    } else if (exponent == (1 << exponent_bits) - 1) {
      return mantissa != 0 ? NAN : sign * INFINITY;
    }
    if (exponent == 0) return sign * std::ldexp(static_cast<double>(mantissa), 1 - bias() - mantissa_bits);
    return sign * std::ldexp(static_cast<double>(mantissa | implicit_one()), exponent - bias() - mantissa_bits);
  }
  uint64_t encode(double value) const {  // of a value that the format has, and that is normal or zero
    if (value == 0) return 0;
    int exponent = 0;
    const double fraction = std::frexp(std::fabs(value), &exponent);  // in [0.5, 1)
    const auto mantissa = static_cast<uint64_t>(std::ldexp(fraction, mantissa_bits + 1)) & (implicit_one() - 1);
    const uint64_t biased = static_cast<uint64_t>(exponent) + static_cast<uint64_t>(bias()) - 1;
    return uint64_t{value < 0} << (mantissa_bits + exponent_bits) | biased << mantissa_bits | mantissa;
  }
  double roundoff() const { return std::ldexp(1, -mantissa_bits - 1); }
  double smallest() const { return std::ldexp(1, 1 - bias() - mantissa_bits); }
};

Format format_of(DataType type) {
  switch (type) {
    case DataType::float16:
      return {5, 10, 2048};
    case DataType::bfloat16:
      return {8, 7, 256};
    case DataType::float8e4m3:
      return {4, 3, 16};
    case DataType::float8e5m2:
      return {5, 2, 8};
    case DataType::float32:
      return {8, 23, 1 << 24};
    default:
      return {11, 52, 1 << 30};
  }
}

// Only so many ranks bring something else than the neutral element, so that narrow formats stay exact for any number of ranks. Averages
// that can't be exact have one, so that their bound stays far below a rank's part.
constexpr Rank contributors = 4;
bool exact(ReduceOp op, int ranks) { return op != ReduceOp::avg || ((ranks & (ranks - 1)) == 0 && ranks <= 64); }
bool contributes(size_t element, ReduceOp op, Rank rank, int ranks) {
  return (rank + static_cast<Rank>(mix(element) % static_cast<uint64_t>(ranks))) % ranks < (exact(op, ranks) ? contributors : 1);
}

// Exact in every format, and so are the products, since inputs leave room for the largest.
constexpr std::array float_scalars{2, -1, 1, -2};
constexpr int largest_float_scalar = 2;
double float_scalar(ReduceOp op, Rank rank) {
  return op == ReduceOp::premul_sum ? float_scalars[static_cast<size_t>(rank) % float_scalars.size()] : 1;
}

double float_input(size_t element, DataType type, ReduceOp op, Rank rank, int ranks) {
  const uint64_t r = random(element, rank);
  const int limit = format_of(type).largest / contributors / (op == ReduceOp::premul_sum ? largest_float_scalar : 1);
  const int any = static_cast<int>(r % static_cast<uint64_t>(2 * limit + 1)) - limit;
  if (op == ReduceOp::min || op == ReduceOp::max) return any;
  if (!contributes(element, op, rank, ranks)) return op == ReduceOp::prod ? 1 : 0;
  if (op == ReduceOp::prod) return ((r & 1) != 0 ? 2 : 0.5) * ((r & 2) != 0 ? -1 : 1);
  return any;
}

struct Expected {
  double value;
  double bound;
};
Expected float_result(size_t element, DataType type, ReduceOp op, int ranks) {
  double value = float_scalar(op, 0) * float_input(element, type, op, 0, ranks);
  double absolute = std::fabs(value);
  for (Rank r = 1; r < ranks; ++r) {
    const double input = float_scalar(op, r) * float_input(element, type, op, r, ranks);
    absolute += std::fabs(input);
    switch (op) {
      case ReduceOp::prod:
        value *= input;
        break;
      case ReduceOp::min:
        value = std::min(value, input);
        break;
      case ReduceOp::max:
        value = std::max(value, input);
        break;
      default:
        value += input;
        break;
    }
  }
  if (op != ReduceOp::avg) return {value, 0};
  const Format format = format_of(type);
  // One part that is not zero: 1/n is rounded once, and its product with the part once (8-bit formats: and once on the way).
  return {value / ranks, exact(op, ranks) ? 0 : 2.5 * format.roundoff() * absolute / ranks + format.smallest()};
}

// Integers: everything modulo 2^64, cut to the type at the end; signed averages divide what the type makes of the sum.
uint64_t integer_input(size_t element, Rank rank, ReduceOp op) {
  return op == ReduceOp::prod ? random(element, rank) | 1 : random(element, rank);
}
// Odd: an even one would lose bits of the input.
uint64_t integer_scalar(ReduceOp op, Rank rank) { return op == ReduceOp::premul_sum ? 2 * static_cast<uint64_t>(rank) + 3 : 1; }

template <class T>
requires std::is_integral_v<T> T integer_result(size_t element, ReduceOp op, int ranks) {
  uint64_t wide = integer_scalar(op, 0) * integer_input(element, 0, op);
  T best = static_cast<T>(wide);
  for (Rank r = 1; r < ranks; ++r) {
    const uint64_t input = integer_scalar(op, r) * integer_input(element, r, op);
    wide = op == ReduceOp::prod ? wide * input : wide + input;
    best = op == ReduceOp::min ? std::min(best, static_cast<T>(input)) : std::max(best, static_cast<T>(input));
  }
  if (op == ReduceOp::min || op == ReduceOp::max) return best;
  const T sum = static_cast<T>(wide);
  if (op != ReduceOp::avg) return sum;
  if constexpr (std::is_signed_v<T>) return static_cast<T>(static_cast<int64_t>(sum) / ranks);
  return static_cast<T>(static_cast<uint64_t>(sum) / static_cast<uint64_t>(ranks));
}

// 16- and 8-bit formats are stored as integers of their bits.
template <class T>
T to_storage(const Format& format, double value) {
  if constexpr (std::is_floating_point_v<T>) return static_cast<T>(value);
  return static_cast<T>(format.encode(value));
}
template <class T>
double from_storage(const Format& format, T stored) {
  if constexpr (std::is_floating_point_v<T>) return static_cast<double>(stored);
  return format.decode(static_cast<uint64_t>(stored));
}

template <class T>
struct Tag {
  using Type = T;
};
template <class Visit>
auto for_storage(DataType type, Visit visit) {
  switch (type) {
    case DataType::int8:
      return visit(Tag<int8_t>{});
    case DataType::int32:
      return visit(Tag<int32_t>{});
    case DataType::uint32:
      return visit(Tag<uint32_t>{});
    case DataType::int64:
      return visit(Tag<int64_t>{});
    case DataType::uint64:
      return visit(Tag<uint64_t>{});
    case DataType::float32:
      return visit(Tag<float>{});
    case DataType::float64:
      return visit(Tag<double>{});
    case DataType::float16:
    case DataType::bfloat16:
      return visit(Tag<uint16_t>{});
    default:
      return visit(Tag<uint8_t>{});
  }
}

// Nobody looks at what is only moved: the unsigned integer of the type's size.
template <class Visit>
auto for_bits(DataType type, Visit visit) {
  switch (size_of(type)) {
    case 1:
      return visit(Tag<uint8_t>{});
    case 2:
      return visit(Tag<uint16_t>{});
    case 4:
      return visit(Tag<uint32_t>{});
    default:
      return visit(Tag<uint64_t>{});
  }
}

}  // namespace

uint64_t input_scalar(DataType type, ReduceOp op, Rank rank) {
  if (op != ReduceOp::premul_sum) return 0;
  return for_storage(type, [&](auto tag) {
    using T = typename decltype(tag)::Type;
    const T scalar = is_integer(type) ? static_cast<T>(integer_scalar(op, rank)) : to_storage<T>(format_of(type), float_scalar(op, rank));
    uint64_t bits = 0;
    std::memcpy(&bits, &scalar, sizeof scalar);
    return bits;
  });
}

void fill_input(void* data, size_t count, DataType type, ReduceOp op, Rank rank, int ranks, size_t first) {
  for_storage(type, [&](auto tag) {
    using T = typename decltype(tag)::Type;
    T* out = static_cast<T*>(data);
    for (size_t i = 0; i < count; ++i) {
      if (is_integer(type)) {
        out[i] = static_cast<T>(integer_input(first + i, rank, op));
      } else {
        out[i] = to_storage<T>(format_of(type), float_input(first + i, type, op, rank, ranks));
      }
    }
  });
}

size_t count_wrong(const void* data, size_t count, DataType type, ReduceOp op, int ranks, size_t first) {
  return for_storage(type, [&](auto tag) {
    using T = typename decltype(tag)::Type;
    const T* in = static_cast<const T*>(data);
    size_t wrong = 0;
    for (size_t i = 0; i < count; ++i) {
      if constexpr (std::is_integral_v<T>) {
        if (is_integer(type)) {
          wrong += in[i] == integer_result<T>(first + i, op, ranks) ? 0 : 1;
          continue;
        }
      }
      const Expected expected = float_result(first + i, type, op, ranks);
      wrong += std::fabs(from_storage(format_of(type), in[i]) - expected.value) <= expected.bound ? 0 : 1;  // NaN is wrong
    }
    return wrong;
  });
}

void fill_bits(void* data, size_t count, DataType type, Rank rank, size_t first) {
  for_bits(type, [&](auto tag) {
    using T = typename decltype(tag)::Type;
    for (size_t i = 0; i < count; ++i) static_cast<T*>(data)[i] = static_cast<T>(random(first + i, rank));
  });
}

size_t count_wrong_bits(const void* data, size_t count, DataType type, Rank rank, size_t first) {
  return for_bits(type, [&](auto tag) {
    using T = typename decltype(tag)::Type;
    size_t wrong = 0;
    for (size_t i = 0; i < count; ++i) wrong += static_cast<const T*>(data)[i] == static_cast<T>(random(first + i, rank)) ? 0 : 1;
    return wrong;
  });
}

}  // namespace gyre::perf
