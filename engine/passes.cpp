#include "engine/passes.h"

#include <cstdint>

namespace gyre::engine {

Status Passes::run(const DirectPlan& plan, const DirectForm& form, std::span<const RankMemory> memory, bool away) {
  const Call& call = plan.call;
  const size_t element = size_of(call.type);
  if (reduces(call.collective)) combine_.bind(call.type, call.op, ranks_, 0, plan.ordered);
  const uint32_t chunks = form.schedule->layout.chunks;
  const auto offset = [&](uint32_t chunk) {
    return (chunks == 1 ? chunk * call.count : chunk / chunks * call.count + form.bounds[chunk % chunks]) * element;
  };
  for (const schedule::Pass& pass : form.schedule->passes[static_cast<size_t>(rank_)]) {
    const uint32_t piece = chunks == 1 ? 0 : pass.to.front().chunk % chunks;
    const size_t count = form.bounds[piece + 1] - form.bounds[piece];
    if (count == 0) continue;
    sources_.clear();
    sinks_.clear();
    for (const schedule::Spot from : pass.from) sources_.push_back(memory[static_cast<size_t>(from.rank)].input + offset(from.chunk));
    for (const schedule::Spot to : pass.to) sinks_.push_back(memory[static_cast<size_t>(to.rank)].output + offset(to.chunk));
    if (sources_.size() > 1) {
      combine_.whole(sources_, sinks_, count);
      continue;
    }
    const Rank source = pass.from.front().rank;
    if (const transport::Attached* process = memory[static_cast<size_t>(source)].process; process != nullptr) {
      if (pass.to.size() != 1 || pass.to.front().rank != rank_) return Error{Code::internal, "a pass from attached memory to another's"};
      const Status read = process->read(sinks_[0], reinterpret_cast<uintptr_t>(sources_[0]), count * element);
      if (!read && away) kernels::fence_away();
      GYRE_TRY(read);
      continue;
    }
    for (std::byte* sink : sinks_) {
      if (sink != sources_[0]) (away ? kernels::copy_away : kernels::copy)(sink, sources_[0], count * element);
    }
  }
  if (away) kernels::fence_away();  // before others hear that it is there
  return {};
}

}  // namespace gyre::engine
