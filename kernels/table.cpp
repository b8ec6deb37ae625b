#include <algorithm>

#include "kernels/ordered.h"
#include "kernels/packet.h"

namespace gyre::kernels {
namespace {

#define GYRE_STEP_ROW(type) &type##_steps,
constexpr std::array<const StepRow*, data_type_count> step_rows{GYRE_STEP_TYPES(GYRE_STEP_ROW)};
#undef GYRE_STEP_ROW

#define GYRE_STAY_ROW(type) &type##_stays,
constexpr std::array<const StayRow*, data_type_count> stay_rows{GYRE_STEP_TYPES(GYRE_STAY_ROW)};
#undef GYRE_STAY_ROW

#define GYRE_PACKET_ROW(type) &type##_packets,
constexpr std::array<const PacketRow*, data_type_count> packet_rows{GYRE_STEP_TYPES(GYRE_PACKET_ROW)};
#undef GYRE_PACKET_ROW

// From float16 on.
constexpr const OrderedRow* none = nullptr;
constexpr std::array<const OrderedRow*, data_type_count - static_cast<size_t>(DataType::float16)> ordered_rows{
    &float16_ordered, none, none, &bfloat16_ordered, &float8e4m3_ordered, &float8e5m2_ordered};

const OrderedRow& ordered_row_of(DataType type) {
  return *ordered_rows[static_cast<size_t>(type) - static_cast<size_t>(DataType::float16)];
}
constexpr size_t column_of(ReduceOp op) { return op == ReduceOp::prod ? 1 : 0; }

constexpr size_t bytes_for_block = size_t{32} * 1024;  // what a block of four packs for each thread does at once

unsigned blocks_worth(size_t bytes, size_t each, unsigned most) {
  const size_t worth = bytes / each + (bytes % each != 0 ? 1 : 0);
  return static_cast<unsigned>(std::clamp<size_t>(worth, 1, std::max(most, 1U)));
}

}  // namespace

StepKernel step_kernel_of(DataType type, ReduceOp op, Shape shape) {
  return (*step_rows[static_cast<size_t>(type)])[static_cast<size_t>(op)][static_cast<size_t>(shape)];
}

StayKernel stay_kernel_of(DataType type, ReduceOp op) { return (*stay_rows[static_cast<size_t>(type)])[static_cast<size_t>(op)]; }

PacketKernel packet_kernel_of(DataType type, ReduceOp op) { return (*packet_rows[static_cast<size_t>(type)])[static_cast<size_t>(op)]; }

StepKernel ordered_kernel_of(DataType type, ReduceOp op) { return ordered_row_of(type).steps[column_of(op)]; }
StayKernel ordered_stay_kernel_of(DataType type, ReduceOp op) { return ordered_row_of(type).stays[column_of(op)]; }

unsigned step_blocks(size_t bytes, unsigned most) { return blocks_worth(bytes, bytes_for_block, most); }
unsigned packet_blocks(size_t bytes, unsigned most) { return blocks_worth(bytes, step_threads * sizeof(Pack), most); }

}  // namespace gyre::kernels
