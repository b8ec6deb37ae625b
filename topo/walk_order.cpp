#include "topo/walk_order.h"

#include <algorithm>
#include <numeric>
#include <unordered_map>
#include <utility>

namespace gyre::topo {
namespace {

using schedule::Program;
using schedule::Step;

class Ordering {
 public:
  Ordering(const schedule::Schedule& schedule, const Placement& placement)
      : schedule_(schedule), placement_(placement), progress_(schedule.programs.size()), ready_(schedule.programs.size()) {
    size_t steps = 0, messages = 0;
    for (const Program& program : schedule_.programs) {
      steps += program.steps.size();
      for (const Step& step : program.steps) messages += step.to.count;
    }
    out_.visits.reserve(steps), out_.messages.reserve(messages), out_.arrivals.reserve(messages);
    after_.reserve(messages), queues_.reserve(messages);
    std::iota(ready_.rbegin(), ready_.rend(), 0);
  }

  WalkOrder run() {
    while (!ready_.empty()) {
      const uint32_t at = ready_.back();
      ready_.pop_back();
      const auto& steps = schedule_.programs[at].steps;
      for (Progress& here = progress_[at]; here.next < steps.size() && arrived(at, steps[here.next]); ++here.next) {
        visit(at, steps[here.next]);
      }
    }
    return std::move(out_);
  }

 private:
  static constexpr uint32_t none = UINT32_MAX;

  struct Queue {
    uint32_t first = none;  // of the messages that were not received
    uint32_t last = none;
    uint32_t waiting = none;  // the program that needs the next one
    int64_t sent = 0;
  };
  struct Progress {
    size_t next = 0;    // step
    size_t there = 0;   // arrivals of the next step that have been seen
    int64_t last = -1;  // visit
  };

  Queue& queue(Rank from, Rank to, uint32_t channel) {
    return queues_[(static_cast<uint64_t>(from) << 38) | (static_cast<uint64_t>(to) << 12) | channel];
  }

  // Whether all that the program's next step receives is there; if not, the message that lacks will make the program ready again.
  bool arrived(uint32_t at, const Step& step) {
    const Program& program = schedule_.programs[at];
    const auto from = schedule_.peers(step.from);
    for (size_t& there = progress_[at].there; there < from.size(); ++there) {
      Queue& queue = this->queue(from[there], program.rank, program.channel);
      if (queue.first != none) continue;
      queue.waiting = at;
      return false;
    }
    progress_[at].there = 0;
    return true;
  }

  void visit(uint32_t at, const Step& step) {
    const auto number = static_cast<uint32_t>(out_.visits.size());
    const auto before = std::exchange(progress_[at].last, number);
    const auto first_arrival = static_cast<uint32_t>(out_.arrivals.size());
    const auto first_send = static_cast<uint32_t>(out_.messages.size());
    out_.visits.push_back({at, &step, before, first_arrival, first_send, {}});
    receive(schedule_.programs[at], step, number);
    send(schedule_.programs[at], step, number);
    out_.visits.back().work = work(out_.visits.back());
  }

  void receive(const Program& program, const Step& step, uint32_t number) {
    for (const Rank peer : schedule_.peers(step.from)) {
      Queue& queue = this->queue(peer, program.rank, program.channel);
      out_.arrivals.push_back(queue.first);
      out_.messages[queue.first].to = number;
      queue.first = after_[queue.first];
    }
  }

  void send(const Program& program, const Step& step, uint32_t number) {
    std::array<int64_t, link_kinds> sent{};
    for (const Rank peer : schedule_.peers(step.to)) {
      const size_t link = placement_.link(program.rank, peer);
      Queue& queue = this->queue(program.rank, peer, program.channel);
      const auto id = static_cast<uint32_t>(out_.messages.size());
      out_.busiest_connection[link] = std::max(out_.busiest_connection[link], ++queue.sent);
      out_.messages.push_back({number, 0, step.flow().count, link, sent[link]});
      sent[link] += step.flow().count;
      after_.push_back(none);
      (queue.first == none ? queue.first : after_[queue.last]) = id;
      queue.last = id;
      if (queue.waiting != none) ready_.push_back(std::exchange(queue.waiting, none));
    }
  }

  Tally work(const Visit& visit) const {
    const Step& step = *visit.step;
    const int64_t count = step.flow().count;
    Tally out;
    out.steps = 1;
    if (step.reduces()) {
      out.reduced = count * (step.sources() - 1);
    } else if (step.dst.present()) {
      out.copied = count;
    }
    for (const uint32_t id : out_.received(visit)) ++out.ends[out_.messages[id].link];
    for (const Message& m : out_.sent(visit)) {
      ++out.ends[m.link];
      out.written[m.link] += count;
    }
    return out;
  }

  const schedule::Schedule& schedule_;
  const Placement& placement_;
  std::vector<Progress> progress_;  // [program]
  std::vector<uint32_t> ready_;     // programs
  std::vector<uint32_t> after_;     // [message]: the next one of its queue
  std::unordered_map<uint64_t, Queue> queues_;
  WalkOrder out_;
};

}  // namespace

WalkOrder walk_order(const schedule::Schedule& schedule, const Placement& placement) { return Ordering(schedule, placement).run(); }

}  // namespace gyre::topo
