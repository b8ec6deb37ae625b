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

BufferKind kind_of(const Extent& extent, const Buffers& buffers) {
  if (extent.input_bytes == 0 && extent.output_bytes == 0) return BufferKind::ordinary;
  const auto& heap = transport::SharedHeap::of_process();
  const bool all = (extent.input_bytes == 0 || heap.find(buffers.input, extent.input_bytes)) &&
                   (extent.output_bytes == 0 || heap.find(buffers.output, extent.output_bytes));
  return all ? BufferKind::shared_heap : BufferKind::ordinary;
}

}  // namespace

void Explanations::note(const Call& call, const Extent& extent, const Buffers& buffers, Planner& planner) {
  const BufferKind buffer = kind_of(extent, buffers);
  const auto algorithm = planner.algorithm(call, buffer);
  if (!algorithm) return;  // the call itself says why
  const Kind kind{call.collective, std::bit_width(call.count * size_of(call.type)), buffer};
  const bool first = !used_.contains(kind);
  ++used_[kind][*algorithm];
  if (!first) return;
  const auto us = planner.predicted_us(call, buffer);
  log::write(log::Level::info, fmt::format("explain: {}: {} runs{}\n{}", std::apply(kind_in_words, kind), *algorithm,
                                           us ? fmt::format(", predicted {:.2f} us", *us) : "", planner.explain(call, buffer)));
}

Explanations::~Explanations() {
  for (const auto& [kind, algorithms] : used_) {
    for (const auto& [algorithm, calls] : algorithms)
      log::write(log::Level::info, fmt::format("explain: {}: {} ran {} times", std::apply(kind_in_words, kind), algorithm, calls));
  }
}

}  // namespace gyre::engine
