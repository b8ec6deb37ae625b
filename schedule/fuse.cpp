#include "schedule/fuse.h"

#include <vector>

namespace gyre::schedule {
namespace {

// Input and output may be the same memory, so the buffer does not matter.
bool shares(const Chunks& a, const Chunks& b) {
  for (uint32_t i = 0; i < a.count; ++i) {
    for (uint32_t j = 0; j < b.count; ++j) {
      if (a[i] == b[j]) return true;
    }
  }
  return false;
}

bool is_send(const Step& step) { return step.from.count == 0 && step.src.present() && !step.dst.present() && step.to.count != 0; }

// A receive followed at once by the send of what it wrote.
void join_sends(std::vector<Step>& steps) {
  std::vector<Step> joined;
  for (const Step& step : steps) {
    const bool joins = !joined.empty() && is_send(step) && joined.back().from.count != 0 && joined.back().to.count == 0 &&
                       joined.back().dst.present() && joined.back().dst == step.src;
    if (joins) {
      joined.back().to = step.to;
    } else {
      joined.push_back(step);
    }
  }
  steps = std::move(joined);
}

// True when the chunks written at `at` are written again before anything reads them.
bool dead(const std::vector<Step>& steps, size_t at) {
  const Chunks& written = steps[at].dst;
  for (size_t i = at + 1; i < steps.size(); ++i) {
    if (shares(steps[i].src, written)) return false;
    if (steps[i].dst == written) return true;
  }
  return false;
}

}  // namespace

Schedule fuse(Schedule schedule) {
  for (Program& program : schedule.programs) {
    join_sends(program.steps);
    for (size_t i = 0; i < program.steps.size(); ++i) {
      Step& step = program.steps[i];
      if (step.reduces() && step.dst.present() && step.to.count != 0 && dead(program.steps, i)) step.dst = {};
    }
  }
  return schedule;
}

}  // namespace gyre::schedule
