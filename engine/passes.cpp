#include "engine/passes.h"

#include <cstdint>

namespace gyre::engine {

Status Passes::run(const DirectPlan& plan, const DirectForm& form, std::span<const RankMemory> memory, bool away) {
  const Call& call = plan.call;
  if (form.combines != nullptr && !plan.ordered) {
    for (const BoundPass& pass : form.passes) combine(pass, memory, *form.combines);
    return {};
  }
  if (reduces(call.collective)) combine_.bind(call.type, call.op, ranks_, 0, plan.ordered);
  Status status;
  for (const BoundPass& pass : form.passes) {
    if (pass.from.size() > 1)
      reduce(pass, memory);
    else if (memory[static_cast<size_t>(pass.from.front().rank)].process == nullptr)
      copy(pass, pass.count * size_of(call.type), memory, away);
    else if (status = read(pass, pass.count * size_of(call.type), memory); !status)
      break;
  }
  if (away) kernels::fence_away();  // before others hear that it is there
  return status;
}

// What reduce() comes to for two ranks, in a straight line: of a small call the rest would take longer than that.
void Passes::combine(const BoundPass& pass, Memory memory, const kernels::Arithmetic& arithmetic) {
  const std::byte* a = input(pass.from[0], memory);
  const std::byte* b = input(pass.from[1], memory);
  std::byte* to = output(pass.to[0], memory);
  if (pass.to.size() == 2)
    arithmetic.combine_both(to, output(pass.to[1], memory), a, b, pass.count);
  else
    arithmetic.combine(to, a, b, pass.count);
}

void Passes::reduce(const BoundPass& pass, Memory memory) {
  sources_.clear();
  sinks_.clear();
  for (const auto& from : pass.from) sources_.push_back(input(from, memory));
  for (const auto& to : pass.to) sinks_.push_back(output(to, memory));
  combine_.whole(sources_, sinks_, pass.count);
}

void Passes::copy(const BoundPass& pass, size_t bytes, Memory memory, bool away) {
  const std::byte* source = input(pass.from.front(), memory);
  for (const auto& to : pass.to) {
    std::byte* sink = output(to, memory);
    if (sink != source) (away ? kernels::copy_away : kernels::copy)(sink, source, bytes);
  }
}

Status Passes::read(const BoundPass& pass, size_t bytes, Memory memory) const {
  if (pass.to.size() != 1 || pass.to.front().rank != rank_) return Error{Code::internal, "a pass from attached memory to another's"};
  const auto& from = pass.from.front();
  const auto address = reinterpret_cast<uintptr_t>(input(from, memory));
  return memory[static_cast<size_t>(from.rank)].process->read(output(pass.to.front(), memory), address, bytes);
}

}  // namespace gyre::engine
