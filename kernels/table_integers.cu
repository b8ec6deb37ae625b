#include "kernels/table_rows.h"

namespace gyre::kernels {

const StepRow int32_steps = integer_steps<int32_t, uint32_t>;
const StepRow uint32_steps = integer_steps<uint32_t, uint32_t>;
const StepRow int64_steps = integer_steps<int64_t, uint64_t>;
const StepRow uint64_steps = integer_steps<uint64_t, uint64_t>;

const StayRow int32_stays = integer_stays<int32_t, uint32_t>;
const StayRow uint32_stays = integer_stays<uint32_t, uint32_t>;
const StayRow int64_stays = integer_stays<int64_t, uint64_t>;
const StayRow uint64_stays = integer_stays<uint64_t, uint64_t>;

const PacketRow int32_packets = integer_packets<int32_t, uint32_t>;
const PacketRow uint32_packets = integer_packets<uint32_t, uint32_t>;
const PacketRow int64_packets = integer_packets<int64_t, uint64_t>;
const PacketRow uint64_packets = integer_packets<uint64_t, uint64_t>;

}  // namespace gyre::kernels
