#include "schedule/flow.h"

#include <algorithm>

#include "schedule/stuck.h"
#include "schedule/worklist.h"

namespace gyre::schedule {
namespace {

class FlowMachine {
 public:
  FlowMachine(const Schedule& schedule, const Wiring& wiring, const Conditions& conditions, std::vector<Announcer>& announcers)
      : schedule_(schedule),
        wiring_(wiring),
        conditions_(conditions),
        cells_(schedule.layout(), schedule.scratch, conditions.in_place),
        announcers_(announcers),
        streams_(wiring.links().size()),
        stand_(schedule.programs.size()),
        worklist_(schedule.programs.size()) {
    if (conditions.mode == Mode::buffered) return;
    holds_.resize(schedule.programs.size() * cells_.count() * conditions.slices);
    awaits_completion_.resize(schedule.programs.size());
    if (conditions.mode != Mode::posted) return;
    announcers_.resize(schedule.programs.size());
    for (size_t p = 0; p < announcers_.size(); ++p) announcers_[p].bind(schedule.programs[p], cells_, conditions.slices, 1);
  }

  std::string run(uint32_t channel) {
    const uint32_t programs = schedule_.strands * static_cast<uint32_t>(schedule_.ranks);
    const uint32_t first = channel * programs;
    for (uint32_t p = first + programs; p-- > first;) worklist_.add(p);
    while (!worklist_.empty()) run_program(worklist_.next());
    return stuck(
        schedule_, first, first + programs, [&](uint32_t p) { return stand_[p].step; },
        [&](uint32_t p) {
          select(p);
          return advance(*this, schedule_, program_->steps[stand_[p].step]);
        });
  }

  // For advance(), of the program that runs.
  bool arrived(Rank peer) {
    Stream& stream = streams_[incoming(peer)];
    const bool here = stream.received < stream.sent && (conditions_.mode != Mode::posted || stream.received < stream.announced);
    stream.receiver_waits = !here;
    return here;
  }
  bool credit(Rank peer) {
    Stream& stream = streams_[outgoing(peer)];
    const bool free = stream.sent - stream.received < conditions_.credits;
    stream.sender_waits = !free;
    return free;
  }
  bool overwritable(const Chunks& chunks) { return !held(chunks, {0, stand_[number_]}); }
  void take(Rank peer) {
    Stream& stream = streams_[incoming(peer)];
    ++stream.received;
    if (stream.sender_waits) worklist_.add(wiring_.links()[incoming(peer)].sender);
    if (conditions_.mode == Mode::mapped) complete(incoming(peer), stream.received);
  }
  void take(const Chunks&) {}
  void put(const Chunks&) {}
  void put(Rank peer) {
    Stream& stream = streams_[outgoing(peer)];
    ++stream.sent;
    if (stream.receiver_waits) worklist_.add(wiring_.links()[outgoing(peer)].receiver);
    if (conditions_.mode == Mode::buffered) return;
    hold(number_, stand_[number_], 1);
    if (conditions_.mode == Mode::posted) complete(outgoing(peer), std::min(stream.sent, stream.announced));
  }
  void finish(const Step&) {}

  // For the announcer, of the program that runs.
  bool posted(Rank /*peer*/) const { return true; }
  bool held(const Chunks& chunks, const Position& position) {
    if (holds_.empty()) return false;
    const size_t first = hold_of(number_, chunks, position.cursor.slice);
    for (uint32_t i = 0; i < chunks.count; ++i) {
      if (holds_[first + size_t{i} * chunks.stride] == 0) continue;
      awaits_completion_[number_] = true;
      return true;
    }
    return false;
  }
  bool expect(Rank peer, const Step&, const Position&) {
    Stream& stream = streams_[incoming(peer)];
    if (stream.announced - stream.received == conditions_.credits) return false;
    ++stream.announced;
    complete(incoming(peer), std::min(stream.sent, stream.announced));
    return true;
  }

 private:
  // Of a link: how many messages, from the beginning, are in which state.
  struct Stream {
    uint32_t sent = 0;
    uint32_t announced = 0;  // of posted mode
    uint32_t completed = 0;  // no longer read from the memory of the sender
    uint32_t received = 0;   // their step has run
    bool sender_waits = false;
    bool receiver_waits = false;
  };

  void select(uint32_t p) {
    number_ = p;
    program_ = &schedule_.programs[p];
  }
  void announce() {
    if (conditions_.mode != Mode::posted) return;
    const Cursor at = stand_[number_];
    announcers_[number_].run(*this, schedule_, at.step == program_->steps.size() ? Position{1, {}} : Position{0, at});
  }
  void run_program(uint32_t p) {
    select(p);
    announce();
    while (stand_[p].step < program_->steps.size()) {
      if (advance(*this, schedule_, program_->steps[stand_[p].step]).wait != Wait::nothing) return;
      stand_[p].next(conditions_.slices);
      announce();
    }
  }

  size_t hold_of(uint32_t p, const Chunks& chunks, uint32_t slice) const {
    return (size_t{p} * conditions_.slices + slice) * cells_.count() + cells_.of(schedule_.programs[p].rank, chunks.buffer, chunks.first);
  }
  // One message more, or less, is read from where the value of a step lies. Each strand keeps its own count, and waits for no other.
  void hold(uint32_t p, Cursor at, int change) {
    const Chunks chunks = lies_in(schedule_.programs[p].steps[at.step]);
    if (!chunks.present()) return;
    const size_t first = hold_of(p, chunks, at.slice);
    for (uint32_t i = 0; i < chunks.count; ++i) holds_[first + size_t{i} * chunks.stride] += static_cast<uint32_t>(change);
  }
  void complete(uint32_t number, uint32_t upto) {
    Stream& stream = streams_[number];
    const Link& link = wiring_.links()[number];
    for (; stream.completed < upto; ++stream.completed) {
      const uint32_t message = stream.completed / conditions_.slices;
      hold(link.sender, {wiring_.sending_step(link.first + message), stream.completed % conditions_.slices}, -1);
      if (awaits_completion_[link.sender] && link.sender != number_) {
        awaits_completion_[link.sender] = false;
        worklist_.add(link.sender);
      }
    }
  }
  uint32_t incoming(Rank peer) const { return wiring_.link(program_->channel, peer, program_->rank); }
  uint32_t outgoing(Rank peer) const { return wiring_.link(program_->channel, program_->rank, peer); }

  const Schedule& schedule_;
  const Wiring& wiring_;
  const Conditions& conditions_;
  Cells cells_;
  std::vector<Announcer>& announcers_;
  std::vector<Stream> streams_;  // [link]
  std::vector<Cursor> stand_;    // [program]
  std::vector<uint32_t> holds_;  // [program, slice, cell]: messages under way that are read from there
  std::vector<char> awaits_completion_;
  Worklist worklist_;

  const Program* program_ = nullptr;  // that runs
  uint32_t number_ = 0;               // and its number
};

}  // namespace

std::string deadlock(const Schedule& schedule, const Wiring& wiring, const Conditions& conditions, std::vector<Announcer>& announcers) {
  FlowMachine machine(schedule, wiring, conditions, announcers);
  for (uint32_t c = 0; c < schedule.channels; ++c) {
    if (std::string text = machine.run(c); !text.empty()) return text;
  }
  return {};
}

}  // namespace gyre::schedule
