// The tables that reduce_isa.cpp and tree_isa.cpp define, one of each per instruction set that they are compiled for. Only kernels/
// includes this.
#pragma once
#include <array>

#include "kernels/reduce_host.h"
#include "kernels/tree_kernels.h"

// Before a loop each of whose elements depends on its own inputs only, also when dst is one of them, which the compiler can't know.
#if defined(__clang__)
#define GYRE_INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
#define GYRE_INDEPENDENT _Pragma("GCC ivdep")
#endif
// The rows of a table in the order of DataType, where integers<T, unsigned T> and floats<T> are rows.
#define GYRE_ROWS                                                                                                               \
  integers<int8_t, uint8_t>, integers<uint8_t, uint8_t>, integers<int32_t, uint32_t>, integers<uint32_t, uint32_t>,             \
      integers<int64_t, uint64_t>, integers<uint64_t, uint64_t>, floats<Half>, floats<float>, floats<double>, floats<Bfloat16>, \
      floats<Float8e4m3>, floats<Float8e5m2>

namespace gyre::kernels {

/// By type, then by op.
using ArithmeticTable = std::array<std::array<Arithmetic, every_reduce_op_count>, data_type_count>;
using TreeTable = std::array<std::array<TreeKernels, every_reduce_op_count>, data_type_count>;

namespace portable {
extern const ArithmeticTable table;
extern const TreeTable tree_table;
void copy_away(void* dst, const void* src, size_t bytes);
}  // namespace portable
namespace avx2 {
extern const ArithmeticTable table;
extern const TreeTable tree_table;
void copy_away(void* dst, const void* src, size_t bytes);
}  // namespace avx2
namespace avx512 {
extern const ArithmeticTable table;
extern const TreeTable tree_table;
void copy_away(void* dst, const void* src, size_t bytes);
}  // namespace avx512

}  // namespace gyre::kernels
