#include "kernels/reduce_host.h"

#include <bit>
#include <cstring>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include "kernels/number.h"
#include "kernels/reduce_isa.h"

namespace gyre::kernels {
namespace {

struct Tables {
  const ArithmeticTable* arithmetic = nullptr;
  const TreeTable* tree = nullptr;
  void (*copy_away)(void*, const void*, size_t) = nullptr;
};
struct Choice {
  std::string_view name;
  Tables tables;
};

#if defined(__x86_64__)
// clang 14 does not know it by name; a virtual machine may hide it from a processor that has it.
bool has_f16c() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid(1, &a, &b, &c, &d) != 0 && (c & bit_F16C) != 0;
}
#endif

/// The tables of an instruction set; null where this processor can't run it.
Tables tables_of(std::string_view isa) {
  if (isa == "portable") return {&portable::table, &portable::tree_table, portable::copy_away};
#if defined(__x86_64__)
  __builtin_cpu_init();  // needed only when a constructor runs before the compiler's own, but then it is
  const bool has_avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && has_f16c();
  if (isa == "avx2" && has_avx2) return {&avx2::table, &avx2::tree_table, avx2::copy_away};
  const bool has_avx512 = has_avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                          __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq");
  if (isa == "avx512" && has_avx512) return {&avx512::table, &avx512::tree_table, avx512::copy_away};
#endif
  return {};
}

const Choice& choice() {
  static const Choice chosen = [] {
    for (std::string_view name : {"avx512", "avx2"}) {
      if (const Tables tables = tables_of(name); tables.arithmetic != nullptr) return Choice{name, tables};
    }
    return Choice{"portable", tables_of("portable")};
  }();
  return chosen;
}

const auto& row(const auto& table, DataType type, ReduceOp op) { return table[static_cast<size_t>(type)][static_cast<size_t>(op)]; }

template <Small T>
double rounded_to(float value) {
  return static_cast<double>(widen(narrow<T>(value)));
}

}  // namespace

const Arithmetic& arithmetic(DataType type, ReduceOp op) { return row(*choice().tables.arithmetic, type, op); }

const Arithmetic* arithmetic(DataType type, ReduceOp op, std::string_view isa) {
  const ArithmeticTable* table = tables_of(isa).arithmetic;
  return table != nullptr ? &row(*table, type, op) : nullptr;
}

// NOLINTNEXTLINE(clang-analyzer-core.NonNullParamChecker): what is chosen is there
const TreeKernels& tree_kernels(DataType type, ReduceOp op) { return row(*choice().tables.tree, type, op); }

const TreeKernels* tree_kernels(DataType type, ReduceOp op, std::string_view isa) {
  const TreeTable* table = tables_of(isa).tree;
  return table != nullptr ? &row(*table, type, op) : nullptr;
}

std::string_view isa() { return choice().name; }

double avg_scalar(DataType type, int ranks) {
  const double exact = 1.0 / ranks;
  const auto value = static_cast<float>(exact);  // NCCL's way: to float first, also on the way to the smaller types
  switch (type) {
    case DataType::float64:
      return exact;
    case DataType::float32:
      return static_cast<double>(value);
    case DataType::float16:
      return rounded_to<Half>(value);
    case DataType::bfloat16:
      return rounded_to<Bfloat16>(value);
    case DataType::float8e4m3:
      return rounded_to<Float8e4m3>(value);
    case DataType::float8e5m2:
      return rounded_to<Float8e5m2>(value);
    default:
      return 1.0;
  }
}

uint64_t avg_scalar_bits(DataType type, int ranks) {
  const double value = avg_scalar(type, ranks);
  const auto in_float = static_cast<float>(value);
  switch (type) {
    case DataType::float64:
      return std::bit_cast<uint64_t>(value);
    case DataType::float32:
      return std::bit_cast<uint32_t>(in_float);
    case DataType::float16:
      return narrow<Half>(in_float).bits;
    case DataType::bfloat16:
      return narrow<Bfloat16>(in_float).bits;
    case DataType::float8e4m3:
      return narrow<Float8e4m3>(in_float).bits;
    case DataType::float8e5m2:
      return narrow<Float8e5m2>(in_float).bits;
    default:
      return 1;
  }
}

Factor factor_of(DataType type, uint64_t bits) {
  switch (type) {
    case DataType::float64:
      return {std::bit_cast<double>(bits), 1};
    case DataType::float32:
      return {static_cast<double>(float_of(static_cast<uint32_t>(bits))), 1};
    case DataType::float16:
      return {static_cast<double>(widen(Half{static_cast<uint16_t>(bits)})), 1};
    case DataType::bfloat16:
      return {static_cast<double>(widen(Bfloat16{static_cast<uint16_t>(bits)})), 1};
    case DataType::float8e4m3:
      return {static_cast<double>(widen(Float8e4m3{static_cast<uint8_t>(bits)})), 1};
    case DataType::float8e5m2:
      return {static_cast<double>(widen(Float8e5m2{static_cast<uint8_t>(bits)})), 1};
    default:
      return {1, bits};
  }
}

void copy(void* dst, const void* src, size_t bytes) {
  if (bytes != 0) std::memcpy(dst, src, bytes);  // the pointers of an empty copy may be null
}

void copy_away(void* dst, const void* src, size_t bytes) { choice().tables.copy_away(dst, src, bytes); }

void fence_away() {
#if defined(__x86_64__)
  __builtin_ia32_sfence();
#endif
}

}  // namespace gyre::kernels
