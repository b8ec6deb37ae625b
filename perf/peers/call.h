// A call under measurement, the same for every library: a collective, an element type, buffers. Everything is in place but all-to-all, root
// is rank 0, and sizes are nccl-tests': of the larger of a rank's input and output.
#pragma once
#include <array>
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

/// Element `i` of type's array; values are small integers, exact in every type.
inline void store(std::byte* data, Type type, size_t i, float value) {
  if (type == Type::float32) {
    std::memcpy(data + 4 * i, &value, 4);
  } else if (type == Type::float16) {
    const auto half = static_cast<_Float16>(value);
    std::memcpy(data + 2 * i, &half, 2);
  } else {
    std::memcpy(data + 2 * i, reinterpret_cast<const std::byte*>(&value) + 2, 2);
  }
}
inline float load(const std::byte* data, Type type, size_t i) {
  float value = 0;
  if (type == Type::float32) {
    std::memcpy(&value, data + 4 * i, 4);
  } else if (type == Type::float16) {
    _Float16 half = 0;
    std::memcpy(&half, data + 2 * i, 2);
    value = static_cast<float>(half);
  } else {
    std::memcpy(reinterpret_cast<std::byte*>(&value) + 2, data + 2 * i, 2);
  }
  return value;
}

}  // namespace gyre::peers
