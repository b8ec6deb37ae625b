#include "engine/combine.h"

#include <algorithm>

namespace gyre::engine {

void Combine::bind(DataType type, ReduceOp op, int ranks, uint64_t scalar, bool ordered) {
  arithmetic_ = &kernels::arithmetic(type, op);
  element_ = size_of(type);
  if (op == ReduceOp::premul_sum) factor_ = kernels::factor_of(type, scalar);
  if (op == ReduceOp::avg) factor_ = {kernels::avg_scalar(type, ranks), 1};
  ranks_ = static_cast<uint64_t>(ranks);
  ordered_ = ordered;
  if (!ordered) return;
  partial_ = kernels::partial_size(type);
  multiplies_own_ = op == ReduceOp::premul_sum;
  canonical_.bind(type, op, ranks);
  canonical_sources_.reserve(static_cast<size_t>(ranks));
}

void Combine::operator()(std::span<const Source> sources, std::span<const Sink> sinks, size_t count, schedule::Fact fact,
                         schedule::Association association) {
  if (ordered_) {
    in_canonical_order(sources, sinks, count, fact.value, association);
  } else {
    in_order(sources, sinks, count, fact);
  }
  if (std::any_of(sinks.begin(), sinks.end(), [](const Sink& sink) { return sink.away; })) kernels::fence_away();
}

void Combine::in_order(std::span<const Source> sources, std::span<const Sink> sinks, size_t count, schedule::Fact fact) {
  const bool copies = sources.size() == 1 && !(scales() && sources[0].own) && !(fact.complete && arithmetic_->divide != nullptr);
  const bool one_pass = sinks.size() == 1 && (copies || (!sinks[0].away && sources.size() <= 2 && !(scales() && fact.replicated)));
  const size_t block = one_pass ? count : block_bytes / element_;
  for (size_t at = 0; at < count; at += block) {
    const size_t n = std::min(block, count - at);
    const size_t offset = at * element_;
    const std::byte* result = sources[0].data + offset;
    if (!copies) {
      std::byte* first = sinks[0].away ? out_ : sinks[0].data + offset;
      reduce(first, sources, offset, n, fact);
      result = first;
    }
    for (const Sink& sink : sinks) put(sink, offset, result, n * element_);
  }
}

void Combine::put(const Sink& sink, size_t offset, const std::byte* data, size_t bytes) const {
  std::byte* to = sink.data + offset;
  if (sink.away)
    kernels::copy_away(to, data, bytes);
  else if (to != data)
    kernels::copy(to, data, bytes);
}

void Combine::in_canonical_order(std::span<const Source> sources, std::span<const Sink> sinks, size_t count, schedule::Form value,
                                 schedule::Association association) {
  const bool whole = value == schedule::Form::whole;
  // What is only passed on stays as it is, but for the part that its rank multiplies, and the only rank's, which is the whole.
  const bool passed_on = sources.size() == 1 && !(sources[0].own && (multiplies_own_ || whole));
  const size_t out = width(value);
  const bool one_pass = sinks.size() == 1 && (passed_on || !sinks[0].away);
  const size_t block = one_pass ? std::max<size_t>(count, 1) : block_bytes / partial_;
  for (size_t at = 0; at < count; at += block) {
    const size_t n = std::min(block, count - at);
    canonical_sources_.clear();
    for (const Source& source : sources) {
      const bool partial = !source.own && wide(source.form);
      canonical_sources_.push_back(
          {source.data + at * (partial ? partial_ : element_), partial, source.own && multiplies_own_ ? &factor_ : nullptr});
    }
    const std::byte* result = canonical_sources_[0].data;
    if (!passed_on) {
      std::byte* first = sinks[0].away ? out_ : sinks[0].data + at * out;
      canonical_(first, !wide(value), canonical_sources_, association, n);
      if (whole) canonical_.divide(first, n);
      result = first;
    }
    for (const Sink& sink : sinks) put(sink, at * out, result, n * out);
  }
}

void Combine::reduce(std::byte* sink, std::span<const Source> sources, size_t offset, size_t count, schedule::Fact fact) {
  const auto at = [offset](Source source) { return Source{source.data + offset, source.own}; };
  if (sources.size() == 1) {
    first(sink, at(sources[0]), count);
  } else if (sources.size() == 2) {
    pair(sink, at(sources[0]), at(sources[1]), count, fact.replicated);
  } else {  // the sink may be a source that comes later, so sums go elsewhere until the last
    pair(sum_, at(sources[0]), at(sources[1]), count, fact.replicated);
    for (size_t i = 2; i < sources.size(); ++i) {
      pair(i + 1 == sources.size() ? sink : sum_, {sum_, false}, at(sources[i]), count, fact.replicated);
    }
  }
  if (fact.complete && arithmetic_->divide != nullptr) arithmetic_->divide(sink, count, ranks_);
}

void Combine::pair(std::byte* sink, Source a, Source b, size_t count, bool replicated) {
  if (arithmetic_->scale == nullptr || !(a.own || b.own)) return arithmetic_->combine(sink, a.data, b.data, count);
  const Source own = a.own ? a : b;
  const Source other = a.own ? b : a;
  if (!replicated) return arithmetic_->scale_combine(sink, own.data, other.data, count, factor_);
  // Other ranks got our part multiplied and rounded, and must get the same bits as we do: no fused multiply-add.
  arithmetic_->scale(scaled_, own.data, count, factor_);
  arithmetic_->combine(sink, a.own ? scaled_ : a.data, b.own ? scaled_ : b.data, count);
}

void Combine::first(std::byte* sink, Source source, size_t count) {
  if (source.own && arithmetic_->scale != nullptr) {
    arithmetic_->scale(sink, source.data, count, factor_);
  } else if (sink != source.data) {
    kernels::copy(sink, source.data, count * element_);
  }
}

void Combine::whole(std::span<const std::byte* const> inputs, std::span<std::byte* const> sinks, size_t count) {
  if (ordered_) return whole_in_canonical_order(inputs, sinks, count);
  const size_t block = block_bytes / element_;
  for (size_t at = 0; at < count; at += block) whole_block(inputs, sinks, at * element_, std::min(block, count - at));
}

void Combine::whole_in_canonical_order(std::span<const std::byte* const> inputs, std::span<std::byte* const> sinks, size_t count) {
  const size_t block = sinks.size() == 1 ? std::max<size_t>(count, 1) : block_bytes / partial_;
  for (size_t at = 0; at < count; at += block) {
    const size_t n = std::min(block, count - at);
    const size_t offset = at * element_;
    canonical_sources_.clear();
    for (const std::byte* input : inputs) canonical_sources_.push_back({input + offset, false, nullptr});
    canonical_(sinks[0] + offset, true, canonical_sources_, schedule::Association::tree, n);
    canonical_.divide(sinks[0] + offset, n);
    for (std::byte* sink : sinks.subspan(1)) kernels::copy(sink + offset, sinks[0] + offset, n * element_);
  }
}

// The last sum goes to two sinks at once; a sink may be an input, so nothing is written there before.
void Combine::whole_block(std::span<const std::byte* const> inputs, std::span<std::byte* const> sinks, size_t offset, size_t count) {
  const std::byte* sum = inputs[0] + offset;
  if (scales()) {
    arithmetic_->scale(sum_, sum, count, factor_);
    sum = sum_;
  }
  const bool last_apart = !scales() && arithmetic_->divide == nullptr && inputs.size() > 1;
  for (size_t i = 1; i + (last_apart ? 1 : 0) < inputs.size(); ++i) {
    if (scales())
      arithmetic_->scale_combine(sum_, inputs[i] + offset, sum, count, factor_);
    else
      arithmetic_->combine(sum_, sum, inputs[i] + offset, count);
    sum = sum_;
  }
  size_t written = 0;
  if (last_apart) {
    const std::byte* last = inputs.back() + offset;
    written = std::min<size_t>(2, sinks.size());
    if (written == 2)
      arithmetic_->combine_both(sinks[0] + offset, sinks[1] + offset, sum, last, count);
    else
      arithmetic_->combine(sinks[0] + offset, sum, last, count);
    sum = sinks[0] + offset;
  } else if (arithmetic_->divide != nullptr) {
    if (sum != sum_) kernels::copy(sum_, sum, count * element_);
    arithmetic_->divide(sum_, count, ranks_);
    sum = sum_;
  }
  for (std::byte* sink : sinks.subspan(written)) {
    if (sink + offset != sum) kernels::copy(sink + offset, sum, count * element_);
  }
}

}  // namespace gyre::engine
