#include "schedule/schedule.h"

#include <algorithm>

namespace gyre::schedule {

uint32_t Schedule::longest_message() const {
  uint32_t longest = 1;
  for (const Program& p : programs) {
    for (const Step& step : p.steps) longest = std::max({longest, step.src.count, step.dst.count});
  }
  return longest;
}

Builder::Builder(std::string family, const Layout& layout, uint32_t channels, uint32_t strands)
    : layout_(layout), named_(std::max(layout.input_chunks(), layout.output_chunks())) {
  schedule_.family = std::move(family);
  schedule_.collective = layout.collective;
  schedule_.ranks = layout.ranks;
  schedule_.root = layout.root;
  schedule_.channels = channels;
  schedule_.strands = strands;
  schedule_.chunks = layout.chunks;
  for (uint32_t c = 0; c < channels; ++c) {
    for (uint32_t s = 0; s < strands; ++s) {
      for (Rank r = 0; r < layout.ranks; ++r) schedule_.programs.push_back({r, c, s, {}});
    }
  }
  current_.assign(static_cast<size_t>(layout.ranks) * named_, Buffer::input);
  written_.assign(current_.size(), false);
}

Peers Builder::list(std::span<const Rank> ranks) {
  const Peers peers{static_cast<uint32_t>(schedule_.peer_table.size()), static_cast<uint32_t>(ranks.size())};
  schedule_.peer_table.insert(schedule_.peer_table.end(), ranks.begin(), ranks.end());
  return peers;
}

void Builder::step(Rank rank, std::span<const Rank> from, Chunks src, Chunks dst, std::span<const Rank> to, uint32_t place) {
  const bool tree = ordered_ && from.size() + (src.present() ? 1 : 0) > 2;
  program(rank).steps.push_back({list(from), src, dst, list(to), place, tree ? Association::tree : Association::in_order});
  wrote(rank, dst);
}

// The name of a buffer's chunk: a buffer of one block, where the other has one per rank, holds this rank's.
uint32_t Builder::named(Rank rank, Buffer buffer, uint32_t chunk) const {
  const bool own =
      (buffer == Buffer::input && layout_.input_chunks() != named_) || (buffer == Buffer::output && layout_.output_chunks() != named_);
  return own ? static_cast<uint32_t>(rank) * layout_.chunks + chunk : chunk;
}

Chunks Builder::in_buffer(Rank rank, Buffer buffer, Chunks chunks) const {
  chunks.buffer = buffer;
  chunks.first -= named(rank, buffer, 0);
  return chunks;
}

void Builder::wrote(Rank rank, const Chunks& dst) {
  schedule_.scratch = std::max(schedule_.scratch, dst.present() && dst.buffer == Buffer::scratch ? dst[dst.count - 1] + 1 : 0);
  if (layout_.collective == Collective::all_to_all) return;
  for (uint32_t i = 0; i < dst.count; ++i) {
    const size_t at = index(rank, named(rank, dst.buffer, dst[i]));
    current_[at] = dst.buffer;
    written_[at] = dst.buffer == Buffer::output;
  }
}

Chunks Builder::room(Rank rank, Chunks chunks, Sum sum) const {
  const uint32_t first = named(rank, Buffer::output, 0);
  const bool fits = chunks.first >= first && chunks[chunks.count - 1] < first + layout_.output_chunks();
  return in_buffer(rank, layout_.has_output(rank) && fits && !(ordered_ && sum == Sum::partial) ? Buffer::output : Buffer::scratch, chunks);
}

Chunks Builder::current(Rank rank, Chunks chunks) {
  const Buffer first = current_[index(rank, chunks[0])];
  bool mixed = false;
  for (uint32_t i = 1; i < chunks.count; ++i) mixed = mixed || current_[index(rank, chunks[i])] != first;
  if (!mixed) return in_buffer(rank, first, chunks);
  const Chunks together = room(rank, chunks);
  for (uint32_t i = 0; i < chunks.count; ++i) {
    const Buffer now = current_[index(rank, chunks[i])];
    const Chunks one{now, chunks[i], 1};
    if (now != together.buffer) step(rank, {}, in_buffer(rank, now, one), in_buffer(rank, together.buffer, one), {});
  }
  return together;
}

void Builder::flow(Rank from, Rank to, Chunks chunks, bool reduces, Sum sum) {
  step(from, {}, current(from, chunks), {}, {&to, 1});
  Step receive{list({&from, 1}), {}, chunks, {}, 1, Association::in_order};
  if (reduces) receive.src = chunks;  // round() says in which buffer
  receives_.push_back({to, receive, sum});
}

void Builder::round() {
  for (auto& [rank, receive, sum] : receives_) {
    if (receive.src.present()) receive.src = current(rank, receive.src);
    receive.dst = room(rank, receive.dst, sum);
    program(rank).steps.push_back(receive);
    wrote(rank, receive.dst);
  }
  receives_.clear();
}

Schedule Builder::build() && {
  for (Rank rank = 0; rank < schedule_.ranks && layout_.collective != Collective::all_to_all; ++rank) {
    for (uint32_t chunk = 0; chunk < layout_.output_chunks() && layout_.has_output(rank); ++chunk) {
      const uint32_t name = named(rank, Buffer::output, chunk);
      if (written_[index(rank, name)]) continue;
      channel(name % schedule_.channels);
      step(rank, {}, in_buffer(rank, current_[index(rank, name)], {Buffer::input, name, 1}), {Buffer::output, chunk, 1}, {});
    }
  }
  return std::move(schedule_);
}

}  // namespace gyre::schedule
