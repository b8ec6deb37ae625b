// The field's vocabulary: ranks, element types, reductions, collectives. Numbers and meanings are NCCL's.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace gyre {

using Rank = int32_t;

enum class DataType : uint8_t { int8, uint8, int32, uint32, int64, uint64, float16, float32, float64, bfloat16, float8e4m3, float8e5m2 };
/// premul_sum: each rank's input is multiplied by a scalar of its own, then the products are summed; NCCL makes such operations on demand.
enum class ReduceOp : uint8_t { sum, prod, max, min, avg, premul_sum };
enum class Collective : uint8_t { all_reduce, reduce_scatter, all_gather, broadcast, reduce, all_to_all, gather, scatter };

inline constexpr size_t data_type_count = 12;
inline constexpr size_t reduce_op_count = 5;        ///< those that need no scalar
inline constexpr size_t every_reduce_op_count = 6;  ///< premul_sum as well
inline constexpr size_t collective_count = 8;

constexpr std::array<DataType, data_type_count> all_data_types() {
  std::array<DataType, data_type_count> types{};
  for (size_t i = 0; i < types.size(); ++i) types[i] = static_cast<DataType>(i);
  return types;
}
/// Those that need no scalar.
constexpr std::array<ReduceOp, reduce_op_count> all_reduce_ops() {
  std::array<ReduceOp, reduce_op_count> ops{};
  for (size_t i = 0; i < ops.size(); ++i) ops[i] = static_cast<ReduceOp>(i);
  return ops;
}

constexpr std::array<Collective, collective_count> all_collectives() {
  std::array<Collective, collective_count> collectives{};
  for (size_t i = 0; i < collectives.size(); ++i) collectives[i] = static_cast<Collective>(i);
  return collectives;
}

/// True where the ranks' parts are reduced, so that there is an operation.
constexpr bool reduces(Collective c) { return c == Collective::all_reduce || c == Collective::reduce_scatter || c == Collective::reduce; }
/// True where one rank, the root, is named.
constexpr bool rooted(Collective c) {
  return c == Collective::broadcast || c == Collective::reduce || c == Collective::gather || c == Collective::scatter;
}

/// Bytes of one element.
inline constexpr std::array<uint8_t, data_type_count> data_type_bytes{1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1};
constexpr size_t size_of(DataType type) { return data_type_bytes[static_cast<size_t>(type)]; }
constexpr bool is_integer(DataType type) { return type <= DataType::uint64; }

/// nccl-tests' names: "float", "half", "bfloat16", "f8e4m3", …; "sum", …; "all_reduce", "alltoall", ….
std::string_view name(DataType);
std::string_view name(ReduceOp);
std::string_view name(Collective);
std::optional<DataType> data_type_named(std::string_view);
/// Of the operations that need no scalar.
std::optional<ReduceOp> reduce_op_named(std::string_view);
std::optional<Collective> collective_named(std::string_view);

}  // namespace gyre
