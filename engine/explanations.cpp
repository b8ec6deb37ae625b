#include "engine/explanations.h"

#include <fmt/format.h>

#include <bit>

#include "base/log.h"
#include "transport/shared_heap.h"

namespace gyre::engine {
namespace {

std::string kind_in_words(Collective collective, int size_class, BufferKind kind) {
  const char* const where = kind == BufferKind::shared_heap ? " of the shared heap" : "";
  if (size_class == 0) return fmt::format("{} of nothing{}", name(collective), where);
  return fmt::format("{}, blocks of {} to {} bytes{}", name(collective), uint64_t{1} << (size_class - 1),
                     (uint64_t{2} << (size_class - 1)) - 1, where);
}

BufferKind buffer_kind(const Extent& extent, const Buffers& buffers) {
  if (extent.input_bytes == 0 && extent.output_bytes == 0) return BufferKind::ordinary;
  const auto& heap = transport::SharedHeap::of_process();
  const bool all = (extent.input_bytes == 0 || heap.find(buffers.input, extent.input_bytes)) &&
                   (extent.output_bytes == 0 || heap.find(buffers.output, extent.output_bytes));
  return all ? BufferKind::shared_heap : BufferKind::ordinary;
}

}  // namespace

Explanations::Kind Explanations::kind_of(const Planned& planned, const Buffers& buffers) {
  const Call& call = planned.call;
  return {call.collective, std::bit_width(call.count * size_of(call.type)), buffer_kind(planned.extent, buffers)};
}

void Explanations::note(const Planned& planned, const Buffers& buffers, Planner& planner) {
  const Kind kind = kind_of(planned, buffers);
  if (!used_.try_emplace(kind).second) return;
  const BufferKind buffer = std::get<BufferKind>(kind);
  log::write(log::Level::info, fmt::format("explain: {}: {}\n{}", std::apply(kind_in_words, kind), planner.outcome(planned, buffer),
                                           planner.explain(planned.call, buffer)));
}

void Explanations::count(const Planned& planned, const Buffers& buffers) {
  const Kind kind = kind_of(planned, buffers);
  ++used_[kind][planned.counted(std::get<BufferKind>(kind))];
}

void Explanations::hear(const Contests& contests) {
  for (auto& [kind, by_way] : used_) {
    const auto& [collective, size_class, buffer] = kind;
    const uint64_t straight = buffer == BufferKind::ordinary ? contests.of(collective, size_class).went_straight() : 0;
    if (straight > 0) by_way["two_shot straight, of these,"] = straight;
  }
}

Explanations::~Explanations() {
  for (const auto& [kind, algorithms] : used_) {
    for (const auto& [algorithm, calls] : algorithms)
      log::write(log::Level::info, fmt::format("explain: {}: {} ran {} times", std::apply(kind_in_words, kind), algorithm, calls));
  }
}

}  // namespace gyre::engine
