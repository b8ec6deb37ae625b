#include "schedule/print.h"

#include <fmt/format.h>

#include <algorithm>

namespace gyre::schedule {
namespace {

std::string text(const Chunks& chunks) {
  constexpr std::string_view names[] = {"in", "out", "tmp"};
  const std::string_view buffer = names[static_cast<size_t>(chunks.buffer)];
  if (chunks.count == 1) return fmt::format("{}[{}]", buffer, chunks.first);
  return fmt::format("{}[{}..{}{}]", buffer, chunks.first, chunks[chunks.count - 1],
                     chunks.stride == 1 ? "" : fmt::format(" by {}", chunks.stride));
}

}  // namespace

std::string describe(const Schedule& schedule, const Step& step) {
  std::string line = operation(step);
  if (step.from.count != 0) line += fmt::format(" <{}", fmt::join(schedule.peers(step.from), ","));
  if (step.src.present()) line += fmt::format(" {}", text(step.src));
  if (step.dst.present()) line += fmt::format(" ={}", text(step.dst));
  if (step.to.count != 0) line += fmt::format(" >{}", fmt::join(schedule.peers(step.to), ","));
  if (step.association == Association::tree && step.sources() > 2) line += " by the tree";
  return line;
}

std::string print(const Schedule& schedule) {
  std::string out;
  for (uint32_t table = 0; table < schedule.channels * schedule.strands; ++table) {
    const uint32_t channel = table / schedule.strands;
    const uint32_t strand = table % schedule.strands;
    if (schedule.channels > 1) out += fmt::format("channel {}{}", channel, schedule.strands > 1 ? ", " : "\n");
    if (schedule.strands > 1) out += fmt::format("strand {}\n", strand);
    std::vector<std::vector<std::string>> columns;
    size_t lines = 0;
    for (Rank rank = 0; rank < schedule.ranks; ++rank) {
      auto& column = columns.emplace_back();
      for (const Step& step : schedule.program(rank, channel, strand).steps) column.push_back(describe(schedule, step));
      lines = std::max(lines, column.size());
    }
    std::vector<size_t> widths;
    for (Rank rank = 0; rank < schedule.ranks; ++rank) {
      size_t width = fmt::format("rank {}", rank).size();
      for (const auto& cell : columns[static_cast<size_t>(rank)]) width = std::max(width, cell.size());
      widths.push_back(width);
    }
    const auto line = [&](const std::string& head, const auto& cell) {
      std::string row = fmt::format("{:>4}", head);
      for (size_t rank = 0; rank < columns.size(); ++rank) row += fmt::format("  {:<{}}", cell(rank), widths[rank]);
      row.erase(row.find_last_not_of(' ') + 1);
      out += row;
      out += '\n';
    };
    line("step", [](size_t rank) { return fmt::format("rank {}", rank); });
    for (size_t i = 0; i < lines; ++i) {
      line(std::to_string(i), [&](size_t rank) { return i < columns[rank].size() ? columns[rank][i] : std::string(); });
    }
  }
  return out;
}

}  // namespace gyre::schedule
