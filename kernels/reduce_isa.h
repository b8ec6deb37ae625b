// The tables that reduce_isa.cpp defines, one per instruction set that it is compiled for. Only kernels/ includes this.
#pragma once
#include <array>

#include "kernels/reduce_host.h"

namespace gyre::kernels {

/// By type, then by op.
using ArithmeticTable = std::array<std::array<Arithmetic, every_reduce_op_count>, data_type_count>;

namespace portable {
extern const ArithmeticTable table;
void copy_away(void* dst, const void* src, size_t bytes);
}  // namespace portable
namespace avx2 {
extern const ArithmeticTable table;
void copy_away(void* dst, const void* src, size_t bytes);
}  // namespace avx2
namespace avx512 {
extern const ArithmeticTable table;
void copy_away(void* dst, const void* src, size_t bytes);
}  // namespace avx512

}  // namespace gyre::kernels
