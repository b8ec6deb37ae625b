#include "kernels/ordered_kernel.h"
#include "kernels/table_rows.h"

namespace gyre::kernels {

const StepRow float16_steps = float_steps<Half, uint16_t>;
const StepRow bfloat16_steps = float_steps<Bfloat16, uint16_t>;
const StepRow float32_steps = float_steps<float, uint32_t>;
const StepRow float64_steps = float_steps<double, uint64_t>;

const StayRow float16_stays = float_stays<Half, uint16_t>;
const StayRow bfloat16_stays = float_stays<Bfloat16, uint16_t>;
const StayRow float32_stays = float_stays<float, uint32_t>;
const StayRow float64_stays = float_stays<double, uint64_t>;

const PacketRow float16_packets = float_packets<Half>;
const PacketRow bfloat16_packets = float_packets<Bfloat16>;
const PacketRow float32_packets = float_packets<float>;
const PacketRow float64_packets = float_packets<double>;

const OrderedRow float16_ordered = ordered_row<Half, uint16_t>;
const OrderedRow bfloat16_ordered = ordered_row<Bfloat16, uint16_t>;

}  // namespace gyre::kernels
