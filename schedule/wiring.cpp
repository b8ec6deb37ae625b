#include "schedule/wiring.h"

#include <fmt/format.h>

#include <algorithm>

#include "schedule/form.h"

namespace gyre::schedule {

std::string where(const Schedule& schedule, const Program& program, size_t step) {
  const std::string strand = schedule.strands > 1 ? fmt::format(" strand {}", program.strand) : "";
  return fmt::format("rank {} channel {}{} step {}", program.rank, program.channel, strand, step);
}

Wiring::Wiring(const Schedule& schedule) : ranks_(static_cast<size_t>(schedule.ranks)), malformed_(schedule::malformed(schedule)) {
  if (malformed_.empty()) connect(schedule);
}

void Wiring::connect(const Schedule& schedule) {
  table_.assign(schedule.channels * ranks_ * ranks_, Link::nobody);
  first_step_.assign(1, 0);
  for (uint32_t p = 0; p < schedule.programs.size(); ++p) {
    first_step_.push_back(first_step_.back() + static_cast<uint32_t>(schedule.programs[p].steps.size()));
    connect(schedule, p);
  }
  uint32_t messages = 0;
  for (Link& link : links_) {
    link.first = messages;
    messages += link.count;
    link.count = 0;  // counted again below
  }
  sends_.resize(messages);
  for (const Program& program : schedule.programs) {
    for (uint32_t s = 0; s < program.steps.size(); ++s) {
      for (const Rank peer : schedule.peers(program.steps[s].to)) {
        Link& link = links_[this->link(program.channel, program.rank, peer)];
        sends_[link.first + link.count++] = s;
      }
    }
  }
}

Link& Wiring::reach(uint32_t channel, Rank from, Rank to) {
  uint32_t& number = table_[index(channel, from, to)];
  if (number == Link::nobody) {
    number = static_cast<uint32_t>(links_.size());
    links_.push_back({from, to});
  }
  return links_[number];
}

void Wiring::connect(const Schedule& schedule, uint32_t p) {
  const Program& program = schedule.programs[p];
  const auto claim = [&](uint32_t& end, const Step& step, std::string_view verb, Rank peer) {
    if (end != Link::nobody && end != p && malformed_.empty()) {
      malformed_ = fmt::format("{} {} rank {}, and so does strand {}: their messages would have no order",
                               where(schedule, program, static_cast<size_t>(&step - program.steps.data())), verb, peer,
                               schedule.programs[end].strand);
    }
    end = p;
  };
  for (const Step& step : program.steps) {
    for (const Rank peer : schedule.peers(step.to)) {
      Link& link = reach(program.channel, program.rank, peer);
      claim(link.sender, step, "sends to", peer);
      ++link.count;
    }
    for (const Rank peer : schedule.peers(step.from)) {
      claim(reach(program.channel, peer, program.rank).receiver, step, "receives from", peer);
    }
  }
}

size_t Wiring::program_of(uint32_t step) const {
  return static_cast<size_t>(std::upper_bound(first_step_.begin(), first_step_.end(), step) - first_step_.begin()) - 1;
}

}  // namespace gyre::schedule
