// A call under measurement, the same for every library: a collective, an element type, buffers. Everything is in place but all-to-all, root
// is rank 0, and sizes are nccl-tests': of the larger of a rank's input and output.
#pragma once
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace gyre::peers {

enum class Op : uint8_t { all_reduce, reduce_scatter, all_gather, broadcast, all_to_all };
enum class Type : uint8_t { float32, float16, bfloat16 };
inline constexpr std::array op_names{"all_reduce", "reduce_scatter", "all_gather", "broadcast", "all_to_all"};
inline constexpr std::array type_names{"float32", "float16", "bfloat16"};

struct Call {
  Op op = Op::all_reduce;
  Type type = Type::float32;
  int ranks = 1;
  size_t block = 0;            ///< elements; of all-reduce and broadcast all there are, else a rank's
  std::byte* data = nullptr;   ///< input and output
  std::byte* apart = nullptr;  ///< output of all-to-all

  static bool has_blocks(Op op) { return op != Op::all_reduce && op != Op::broadcast; }
  size_t width() const { return type == Type::float32 ? 4 : 2; }
  size_t elements() const { return block * (has_blocks(op) ? static_cast<size_t>(ranks) : 1); }
  size_t bytes() const { return elements() * width(); }
  std::byte* block_of(int rank) const { return data + static_cast<size_t>(rank) * block * width(); }
};

/// float16 by its bits, since not every compiler has the type. Of what a float16 holds exactly, zero or normal and positive.
inline uint16_t half_of(float value) {
  if (value == 0) return 0;
  int exponent = 0;
  const float fraction = std::frexp(value, &exponent);  // in [0.5, 1)
  return static_cast<uint16_t>((exponent + 14) << 10 | (static_cast<int>(std::ldexp(fraction, 11)) & 0x3ff));
}
inline float value_of_half(uint16_t bits) {
  const int exponent = bits >> 10 & 0x1f;
  const auto mantissa = static_cast<float>(bits & 0x3ff);
  if (exponent == 0x1f) return NAN;  // or infinity: never right
  const float magnitude = exponent == 0 ? std::ldexp(mantissa, -24) : std::ldexp(mantissa + 1024, exponent - 25);
  return (bits & 0x8000) != 0 ? -magnitude : magnitude;
}

/// Element `i` of type's array; values are small integers, exact in every type.
inline void store(std::byte* data, Type type, size_t i, float value) {
  if (type == Type::float32) {
    std::memcpy(data + 4 * i, &value, 4);
  } else if (type == Type::float16) {
    const uint16_t bits = half_of(value);
    std::memcpy(data + 2 * i, &bits, 2);
  } else {
    std::memcpy(data + 2 * i, reinterpret_cast<const std::byte*>(&value) + 2, 2);
  }
}
inline float load(const std::byte* data, Type type, size_t i) {
  float value = 0;
  if (type == Type::float32) {
    std::memcpy(&value, data + 4 * i, 4);
  } else if (type == Type::float16) {
    uint16_t bits = 0;
    std::memcpy(&bits, data + 2 * i, 2);
    value = value_of_half(bits);
  } else {
    std::memcpy(reinterpret_cast<std::byte*>(&value) + 2, data + 2 * i, 2);
  }
  return value;
}

}  // namespace gyre::peers
