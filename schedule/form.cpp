#include "schedule/form.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "schedule/wiring.h"

namespace gyre::schedule {
namespace {

class Rules {
 public:
  explicit Rules(const Schedule& schedule)
      : schedule_(schedule),
        layout_(schedule.layout()),
        there_{layout_.input_chunks(), layout_.output_chunks(), schedule.scratch},
        named_(static_cast<size_t>(schedule.ranks)) {}

  /// What is wrong with a step; empty: nothing.
  std::string_view fault(const Program& program, const Step& step) {
    if (!exist(step.src) || !exist(step.dst)) return "names a chunk that does not exist, or one twice";
    if (!owned(step.src, program.channel) || !owned(step.dst, program.channel)) return "names a chunk of another channel";
    if (!peers(step.from, program.rank) || !peers(step.to, program.rank)) return "names itself, a rank that does not exist, or one twice";
    if (step.sources() == 0) return "has no source";
    if (!step.flow().present()) return "names no chunk: the size of its message is unknown";
    if (step.src.present() && step.dst.present() && step.src.count != step.dst.count) return "reads and writes different numbers of chunks";
    if (step.dst.present() && step.dst.buffer == Buffer::input) return "writes the input";
    for (const Chunks& chunks : {step.src, step.dst}) {
      if (!chunks.present()) continue;
      if (chunks.buffer == Buffer::input && !layout_.has_input(program.rank)) return "reads an input, which this rank does not have";
      if (chunks.buffer == Buffer::output && !layout_.has_output(program.rank)) return "uses an output, which this rank does not have";
    }
    return {};
  }

 private:
  bool exist(const Chunks& chunks) const {
    if (!chunks.present()) return true;
    const uint64_t last = chunks.first + uint64_t{chunks.count - 1} * chunks.stride;
    return last < there_[static_cast<size_t>(chunks.buffer)] && (chunks.count == 1 || chunks.stride != 0);
  }
  // Messages order what one channel does; nothing orders two channels, so each chunk belongs to one.
  bool owned(const Chunks& chunks, uint32_t channel) const {
    return !chunks.present() ||
           (chunks.first % schedule_.channels == channel && (chunks.count == 1 || chunks.stride % schedule_.channels == 0));
  }
  bool peers(Peers list, Rank own) {
    if (uint64_t{list.first} + list.count > schedule_.peer_table.size()) return false;
    ++lists_;
    for (const Rank peer : schedule_.peers(list)) {
      if (peer < 0 || peer >= schedule_.ranks || peer == own || named_[static_cast<size_t>(peer)] == lists_) return false;
      named_[static_cast<size_t>(peer)] = lists_;
    }
    return true;
  }

  const Schedule& schedule_;
  Layout layout_;
  uint32_t there_[3];            // chunks of each buffer
  std::vector<uint64_t> named_;  // [rank]: the last list that names it
  uint64_t lists_ = 0;
};

}  // namespace

std::string malformed(const Schedule& schedule) {
  const auto& [family, collective, ranks, root, channels, strands, chunks, scratch, programs, peers] = schedule;
  if (ranks < 1 || channels < 1 || strands < 1 || chunks < 1) return "has no ranks, channels, strands or chunks";
  if (rooted(collective) && (root < 0 || root >= ranks)) return fmt::format("root {} does not exist", root);
  // Else the chunks that a channel owns in one buffer would be another channel's in the buffer that shares its memory in place.
  if (chunks % channels != 0) return fmt::format("{} channels do not share {} chunks evenly", channels, chunks);
  size_t at = 0;
  for (uint32_t c = 0; c < channels; ++c) {
    for (uint32_t s = 0; s < strands; ++s) {
      for (Rank r = 0; r < ranks; ++r, ++at) {
        const bool fits = at < programs.size() && programs[at].rank == r && programs[at].channel == c && programs[at].strand == s;
        if (!fits) return fmt::format("rank {} has no program on channel {} strand {}", r, c, s);
      }
    }
  }
  if (at != programs.size()) return "has more programs than ranks, channels and strands";
  Rules rules(schedule);
  for (const Program& program : schedule.programs) {
    for (size_t i = 0; i < program.steps.size(); ++i) {
      const std::string_view fault = rules.fault(program, program.steps[i]);
      if (!fault.empty()) return fmt::format("{} {}", where(schedule, program, i), fault);
    }
  }
  return {};
}

}  // namespace gyre::schedule
