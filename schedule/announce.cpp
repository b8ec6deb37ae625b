#include "schedule/announce.h"

namespace gyre::schedule {

std::vector<int64_t> last_accesses(const Program& program, const Cells& cells) {
  std::vector<int64_t> last(program.steps.size(), -1);
  std::vector<int64_t> touched(cells.count(), -1);  // [cell]: the last step that did
  for (size_t i = 0; i < program.steps.size(); ++i) {
    const Step& step = program.steps[i];
    if (lands(step)) last[i] = touched[cells.of(program.rank, step.dst.buffer, step.dst.first)];
    for (const Chunks& chunks : {step.src, step.dst}) {
      if (!chunks.present()) continue;
      const size_t first = cells.of(program.rank, chunks.buffer, chunks.first);
      for (uint32_t k = 0; k < chunks.count; ++k) touched[first + size_t{k} * chunks.stride] = static_cast<int64_t>(i);
    }
  }
  return last;
}

}  // namespace gyre::schedule
