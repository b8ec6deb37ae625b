#include "base/types.h"

#include <algorithm>

namespace gyre {
namespace {

constexpr std::array<std::string_view, data_type_count> data_type_names{"int8", "uint8", "int32",  "uint32",   "int64",  "uint64",
                                                                        "half", "float", "double", "bfloat16", "f8e4m3", "f8e5m2"};
constexpr std::array<std::string_view, every_reduce_op_count> reduce_op_names{"sum", "prod", "max", "min", "avg", "mulsum"};
constexpr std::array<std::string_view, collective_count> collective_names{"all_reduce", "reduce_scatter", "all_gather", "broadcast",
                                                                          "reduce",     "alltoall",       "gather",     "scatter"};

template <class T, size_t n>
std::optional<T> find(const std::array<std::string_view, n>& names, std::string_view wanted) {
  const auto* it = std::find(names.begin(), names.end(), wanted);
  if (it == names.end()) return std::nullopt;
  return static_cast<T>(it - names.begin());
}

}  // namespace

std::string_view name(DataType type) { return data_type_names[static_cast<size_t>(type)]; }
std::string_view name(ReduceOp op) { return reduce_op_names[static_cast<size_t>(op)]; }
std::string_view name(Collective collective) { return collective_names[static_cast<size_t>(collective)]; }
std::optional<DataType> data_type_named(std::string_view wanted) { return find<DataType>(data_type_names, wanted); }
std::optional<ReduceOp> reduce_op_named(std::string_view wanted) {
  const auto op = find<ReduceOp>(reduce_op_names, wanted);
  return op != ReduceOp::premul_sum ? op : std::nullopt;
}
std::optional<Collective> collective_named(std::string_view wanted) { return find<Collective>(collective_names, wanted); }

}  // namespace gyre
