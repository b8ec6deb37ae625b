#include "kernels/table_rows.h"

namespace gyre::kernels {

const StepRow int8_steps = integer_steps<int8_t, uint8_t>;
const StepRow uint8_steps = integer_steps<uint8_t, uint8_t>;

const StayRow int8_stays = integer_stays<int8_t, uint8_t>;
const StayRow uint8_stays = integer_stays<uint8_t, uint8_t>;

const PacketRow int8_packets = integer_packets<int8_t, uint8_t>;
const PacketRow uint8_packets = integer_packets<uint8_t, uint8_t>;

}  // namespace gyre::kernels
