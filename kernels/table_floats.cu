#include "kernels/table_rows.h"

namespace gyre::kernels {

const StepRow float16_steps = float_steps<Half, uint16_t>;
const StepRow bfloat16_steps = float_steps<Bfloat16, uint16_t>;
const StepRow float32_steps = float_steps<float, uint32_t>;
const StepRow float64_steps = float_steps<double, uint64_t>;

}  // namespace gyre::kernels
