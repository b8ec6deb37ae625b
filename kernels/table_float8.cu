#include "kernels/ordered_kernel.h"
#include "kernels/table_rows.h"

namespace gyre::kernels {

const StepRow float8e4m3_steps = float_steps<Float8e4m3, uint8_t>;
const StepRow float8e5m2_steps = float_steps<Float8e5m2, uint8_t>;

const StayRow float8e4m3_stays = float_stays<Float8e4m3, uint8_t>;
const StayRow float8e5m2_stays = float_stays<Float8e5m2, uint8_t>;

const PacketRow float8e4m3_packets = float_packets<Float8e4m3>;
const PacketRow float8e5m2_packets = float_packets<Float8e5m2>;

const OrderedRow float8e4m3_ordered = ordered_row<Float8e4m3, uint8_t>;
const OrderedRow float8e5m2_ordered = ordered_row<Float8e5m2, uint8_t>;

}  // namespace gyre::kernels
