#include "engine/device_mapped.h"

#include <algorithm>
#include <utility>

#include "kernels/reduce_host.h"
#include "topo/select.h"

namespace gyre::engine {

using kernels::StepList;

std::shared_ptr<const schedule::Direct> mapped_form(const Plan& plan) {
  const schedule::Schedule& schedule = plan.schedule();
  const bool simple = topo::can_be_mapped(schedule.family, schedule.collective) && schedule.channels == 1 && schedule.ranks > 1;
  if (!simple || plan.ordered() || schedule.ranks > static_cast<int>(StepList::most)) return nullptr;
  auto form = std::make_shared<schedule::Direct>(mapped(schedule));
  const bool one_each = std::all_of(form->passes.begin(), form->passes.end(), [](const auto& passes) { return passes.size() <= 1; });
  const bool proven = fault(*form, false).empty() && (!form->layout.has_in_place() || fault(*form, true).empty());
  return one_each && proven ? form : nullptr;
}

// A message that a rank sends holds its part multiplied, and its own is multiplied where it is added: where that is the first, it is added
// to the second.
std::optional<BoundPass> DeviceMapped::pass(const Plan& plan) {
  if (!reached_ || plan.call().count == 0) return std::nullopt;
  const auto known = forms_.find(&plan.schedule());
  const auto& form = known != forms_.end() ? known->second : forms_.emplace(&plan.schedule(), mapped_form(plan)).first->second;
  if (form == nullptr) return std::nullopt;
  std::vector<BoundPass> passes = bound_passes(*form, rank_, plan.call());
  if (passes.empty()) return BoundPass();
  auto& from = passes.front().from;
  if (from.size() > 1 && from[0].rank == rank_) std::swap(from[0], from[1]);
  return std::move(passes.front());
}

DeviceSteps steps_of(const Call& call, const BoundPass& pass, const StepList* list, uint64_t first_ticket) {
  DeviceSteps steps;
  steps.kernels.resize(mapped_steps);
  for (uint32_t i = 0; i < mapped_steps; ++i) {
    steps.kernels[i].step = i;
    steps.steps.emplace_back().kernels_end = i + 1;
  }
  DeviceKernel& kernel = steps.kernels[kernel_runs];
  const bool computes = reduces(call.collective);
  kernel.shape = kernels::Shape::many_to_many;
  kernel.type = computes ? call.type : DataType::uint8;
  kernel.op = computes ? call.op : ReduceOp::sum;
  kernel.args.list = list;
  kernel.args.count = pass.count * size_of(call.type) / size_of(kernel.type);
  kernel.args.scalar = first_ticket + kernel_runs;
  return steps;
}

size_t mapped_traffic(const Call& call, const BoundPass& pass) {
  return pass.count * size_of(call.type) * (pass.from.size() + pass.to.size());
}

uint64_t scalar_of_part(const Call& call, uint64_t own, int ranks) {
  if (call.op != ReduceOp::avg) return own;
  return is_integer(call.type) ? static_cast<uint64_t>(ranks) : kernels::avg_scalar_bits(call.type, ranks);
}

void write_list(StepList& list, const BoundPass& pass, Rank rank, std::span<const MappedBuffers> buffers) {
  const auto of = [&](const BoundPass::Place& at) -> const MappedBuffers& { return buffers[static_cast<size_t>(at.rank)]; };
  list.sources = list.destinations = list.own = 0;
  for (const BoundPass::Place& from : pass.from) {
    if (from.rank == rank) list.own = list.sources;
    list.scalar[list.sources] = of(from).scalar;
    list.source[list.sources++] = of(from).input + from.offset;
  }
  for (const BoundPass::Place& to : pass.to) {
    std::byte* const at = of(to).output + to.offset;
    const bool stays = list.sources == 1 && at == list.source[0];
    if (!stays) list.destination[list.destinations++] = at;
  }
}

}  // namespace gyre::engine
