// The tables that reduce_isa.cpp and tree_isa.cpp define, one of each per instruction set that they are compiled for. Only kernels/
// includes this.
#pragma once
#include <array>

#include "kernels/reduce_host.h"
#include "kernels/tree_kernels.h"

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
