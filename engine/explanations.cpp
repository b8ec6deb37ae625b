#include "engine/explanations.h"

#include <fmt/format.h>

#include <bit>

#include "base/log.h"
#include "base/text.h"

namespace gyre::engine {
namespace {

std::string in_words(Collective collective, int size_class) {
  if (size_class == 0) return fmt::format("{} of nothing", name(collective));
  return fmt::format("{} of {} to {} bytes", name(collective), uint64_t{1} << (size_class - 1), (uint64_t{1} << size_class) - 1);
}

}  // namespace

void Explanations::note(const Call& call, Planner& planner) {
  const auto algorithm = planner.algorithm(call, BufferKind::ordinary);
  if (!algorithm) return;  // the call itself says why
  const Kind kind{call.collective, std::bit_width(call.count * size_of(call.type))};
  const bool first = !used_.contains(kind);
  ++used_[kind][*algorithm];
  if (!first) return;
  const auto us = planner.predicted_us(call, BufferKind::ordinary);
  log::write(log::Level::info,
             fmt::format("explain: {}: {} runs{}\n{}", in_words(kind.first, kind.second), *algorithm,
                         us ? fmt::format(", predicted {:.2f} us", *us) : "", planner.explain(call, BufferKind::ordinary)));
}

Explanations::~Explanations() {
  for (const auto& [kind, algorithms] : used_) {
    for (const auto& [algorithm, calls] : algorithms)
      log::write(log::Level::info, fmt::format("explain: {}: {} ran {} times", in_words(kind.first, kind.second), algorithm, calls));
  }
}

}  // namespace gyre::engine
