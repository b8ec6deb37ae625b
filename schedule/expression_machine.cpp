#include "schedule/expression_machine.h"

#include <algorithm>

#include "schedule/canonical.h"
#include "schedule/stuck.h"

namespace gyre::schedule {

ExpressionMachine::ExpressionMachine(const Schedule& schedule, const Wiring& wiring, bool in_place)
    : Unbounded(schedule, wiring),
      layout_(schedule.layout()),
      cells_(layout_, schedule.scratch, in_place),
      reduces_(reduces(schedule.collective)),
      expressions_(schedule.ranks),
      messages_(wiring.messages()),
      results_(wiring.steps()),
      forms_(wiring.steps()) {
  size_t expressions = size_t{layout_.input_chunks()} * static_cast<size_t>(layout_.ranks);
  size_t sent = 0;
  for (const Program& program : schedule.programs) {
    for (const Step& step : program.steps) {
      if (step.to.count != 0) sent += step.flow().count;
      expressions += size_t{step.sources() - 1} * step.flow().count;
    }
  }
  values_.reserve(sent);
  expressions_.reserve(expressions);
  memory_.resize(first_cell(layout_.ranks));
  for (Rank r = 0; r < layout_.ranks; ++r) {
    for (uint32_t chunk = 0; chunk < layout_.input_chunks() && layout_.has_input(r); ++chunk) {
      memory_[first_cell(r) + cells_.of(r, Buffer::input, chunk)] = expressions_.leaf(r, chunk) | (reduces_ ? raw : 0);
    }
  }
  place_.resize(std::max({layout_.input_chunks(), layout_.output_chunks(), schedule.scratch}));
  for (uint32_t chunk = 0; chunk < place_.size(); ++chunk) place_[chunk] = chunk % layout_.chunks;
}

std::string ExpressionMachine::run(uint32_t channel) {
  const uint32_t programs = schedule_.strands * static_cast<uint32_t>(schedule_.ranks);
  const uint32_t first = channel * programs;
  play(first, first + programs);
  if (!fault_.empty()) return fault_;
  return stuck(
      schedule_, first, first + programs, [&](uint32_t p) { return stand_[p]; }, [&](uint32_t p) { return attempt(p); });
}

void ExpressionMachine::take(Rank peer) {
  const Message& message = messages_[next_from(peer)];
  const Id* values = values_.data() + message.first;
  const Form form = form_of(values[0]);
  if (sources_ > 0 && peer != schedule_.peers(program_->steps[step_].from)[0] && forms_[number()].arrived != form) {
    formless("receives parts and partial sums at once, whose messages differ in size");
  }
  forms_[number()].arrived = form;
  add(values, message.count);
}

void ExpressionMachine::take(const Chunks& chunks) {
  const size_t first = first_cell(program_->rank) + cells_.of(program_->rank, chunks.buffer, chunks.first);
  const Id expected = reduces_ && chunks.buffer == Buffer::input ? raw : 0;
  local_.resize(chunks.count);
  for (uint32_t i = 0; i < chunks.count; ++i) {
    const Id id = memory_[first + size_t{i} * chunks.stride];
    if (id == Expressions::none || (id & raw) > expected) return fault("reads chunk {} before it is written", chunks[i]);
    if ((id & raw) < expected) return fault("reads chunk {} of the input after it was overwritten in place", chunks[i]);
    local_[i] = id & ~raw;
  }
  forms_[number()].local = chunks.buffer == Buffer::input ? Form::part : form_of(local_[0]);
  add(local_.data(), local_.size());
}

void ExpressionMachine::add(const Id* values, size_t count) {
  if (sources_ > 0 && count * sources_ != taken_.size()) fault("reduces {} chunks with {}", taken_.size() / sources_, count);
  taken_.insert(taken_.end(), values, values + count);
  if (++sources_ == program_->steps[step_].sources() && fault_.empty()) reduce();
}

void ExpressionMachine::reduce() {
  const size_t count = taken_.size() / sources_;
  value_.assign(taken_.begin(), taken_.begin() + static_cast<std::ptrdiff_t>(count));
  if (sources_ == 1) return;
  const auto reduced = [&](Id left, Id right) {
    if (left == Expressions::none || right == Expressions::none) return Expressions::none;  // was told already
    const Id id = expressions_.reduce(left, right, program_->rank, number());
    if (id == Expressions::none) {
      fault("reduces {} of chunk {} with {} of chunk {}: not the same chunk, or a part twice", expressions_.text(left),
            expressions_.chunk(left), expressions_.text(right), expressions_.chunk(right));
    }
    return id;
  };
  const bool tree = program_->steps[step_].association == Association::tree;
  for (size_t i = 0; i < count; ++i) {
    const auto source = [&](uint32_t s) { return taken_[s * count + i]; };
    if (tree) value_[i] = reduce_canonically(CanonicalTree(sources_), 0, sources_, source, reduced);
    for (uint32_t s = 1; s < sources_ && !tree; ++s) value_[i] = reduced(value_[i], source(s));
  }
}

// What the value of a step is, and whether that has room in ordered numerics.
void ExpressionMachine::note_form(const Step& step) {
  const Form form = form_of(value_[0]);
  forms_[number()].value = form;
  for (const Id id : value_) {
    if (form_of(id) != form) formless("has sums of some ranks in a message with sums of all, which differ in size");
  }
  if (step.to.count != 0 && form == Form::partial) sends_partial_ = true;
  if (!step.dst.present()) return;
  if (step.dst.buffer == Buffer::output && form != Form::whole)
    formless("keeps what is not the whole in the output, which may be too small for it");
  if (step.src.buffer == step.dst.buffer && step.src.shares(step.dst) && forms_[number()].local != form) {
    formless("keeps a sum where it reads a part of it, which may be smaller");
  }
}

void ExpressionMachine::put(const Chunks& chunks) {
  if (chunks.count != value_.size()) return fault("writes {} chunks from {}", chunks.count, value_.size());
  const Chunks& read = program_->steps[step_].src;
  if (chunks.count > 1 && read.present() && crosses(read, chunks)) return fault("overwrites chunks that it reads for others");
  const size_t first = first_cell(program_->rank) + cells_.of(program_->rank, chunks.buffer, chunks.first);
  for (uint32_t i = 0; i < chunks.count; ++i) {
    const uint32_t chunk = expressions_.chunk(value_[i]);
    if (place_[chunk] != place_[chunks[i]]) return fault("writes chunk {} to {}, which is not of its size", chunk, chunks[i]);
    memory_[first + size_t{i} * chunks.stride] = value_[i];
  }
}

// Chunks are done one by one: memory may be read and written by a step for the same chunk, but not for different ones.
bool ExpressionMachine::crosses(Chunks read, Chunks written) const {
  read.first = static_cast<uint32_t>(cells_.of(program_->rank, read.buffer, read.first));
  written.first = static_cast<uint32_t>(cells_.of(program_->rank, written.buffer, written.first));
  read.buffer = written.buffer;
  return read != written && read.shares(written);
}

void ExpressionMachine::put(Rank peer) {
  if (sent_.count == 0) {
    sent_ = {values_.size(), static_cast<uint32_t>(value_.size())};
    values_.insert(values_.end(), value_.begin(), value_.end());
  }
  messages_[next_to(peer)] = sent_;
}

void ExpressionMachine::finish(const Step& step) {
  if (step.flow().count != value_.size()) fault("takes {} chunks for {}", value_.size(), step.flow().count);
  if (step.reduces() && fault_.empty()) {
    results_[number()] = {result_values_.size(), static_cast<uint32_t>(value_.size())};
    result_values_.insert(result_values_.end(), value_.begin(), value_.end());
    const bool complete = expressions_.complete(value_.front());
    for (const Id id : value_) {
      if (expressions_.complete(id) != complete) return fault("completes some of its chunks and not all");
    }
  }
  if (reduces_ && fault_.empty()) note_form(step);
  value_.clear();
  taken_.clear();
  sources_ = 0;
  sent_ = {};
}

std::string ExpressionMachine::refuse(Id reduction, std::string_view why) const {
  const uint32_t number = expressions_.step(reduction);
  const size_t program = wiring_.program_of(number);
  return fmt::format("{} reduces {} with {}: {}", where(schedule_, schedule_.programs[program], number - wiring_.first_step(program)),
                     expressions_.text(expressions_.left(reduction)), expressions_.text(expressions_.right(reduction)), why);
}

std::string ExpressionMachine::left_over() const {
  for (size_t i = 0; i < queues_.size(); ++i) {
    if (queues_[i].sent == queues_[i].received) continue;
    const Link& link = wiring_.links()[i];
    const uint32_t step = wiring_.sending_step(link.first + queues_[i].received);
    return fmt::format("{} messages were never received, the first from {}", queues_[i].sent - queues_[i].received,
                       where(schedule_, schedule_.programs[link.sender], step));
  }
  return {};
}

std::vector<std::vector<Fact>> ExpressionMachine::facts() const {
  std::vector<std::vector<Fact>> all(schedule_.programs.size());
  for (size_t p = 0; p < all.size(); ++p) {
    for (uint32_t number = wiring_.first_step(p); number < wiring_.first_step(p + 1); ++number) {
      Fact& fact = all[p].emplace_back(forms_[number]);
      for (size_t i = 0; i < results_[number].count; ++i) {
        const Id id = result_values_[results_[number].first + i];
        fact.complete = expressions_.complete(id);  // of all chunks or of none
        fact.replicated = fact.replicated || expressions_.replicated(id);
      }
    }
  }
  return all;
}

}  // namespace gyre::schedule
