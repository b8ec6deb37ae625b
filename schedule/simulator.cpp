#include "schedule/simulator.h"

#include <algorithm>

#include "schedule/critical_path.h"
#include "schedule/stuck.h"
#include "schedule/timed_machine.h"

namespace gyre::schedule {

Simulator::Simulator(const Schedule& schedule, const Wiring& wiring, const Network& network, const Trial& trial)
    : schedule_(schedule),
      wiring_(wiring),
      network_(network),
      trial_(trial),
      slice_bytes_(trial.block_bytes / schedule.chunks / (double{1} * trial.conditions.slices * trial.rounds)),
      cells_(schedule.layout(), schedule.scratch, trial.conditions.in_place),
      programs_(schedule.programs.size()),
      factor_(static_cast<size_t>(schedule.ranks), 1),
      ports_(network) {
  uint32_t processors = 0;
  for (Rank rank = 0; rank < schedule.ranks; ++rank) processors = std::max(processors, network.processor(rank) + 1);
  processor_free_.resize(processors);
  processor_step_.resize(processors);
  if (held()) readers_.resize(static_cast<size_t>(schedule.ranks) * cells_.count() * trial.conditions.slices);
  connect();
  for (const Straggler& straggler : trial.stragglers) {
    factor_[static_cast<size_t>(straggler.rank)] *= straggler.factor;
    for (uint32_t i = 0; i < programs_.size(); ++i) {
      if (schedule.programs[i].rank == straggler.rank) programs_[i].begin = straggler.delay;
    }
  }
  result_.rank_finish.resize(static_cast<size_t>(schedule.ranks));
}

void Simulator::connect() {
  for (const Link& link : wiring_.links()) {
    const auto route = network_.link(link.from, link.to);
    if (!route && !missing_) missing_ = {link.from, link.to};
    TimedConnection& connection = connections_.emplace_back();
    connection.link = link;
    connection.route = route.value_or(Route{});
  }
  for (uint32_t i = 0; i < programs_.size(); ++i) {
    const Program& program = schedule_.programs[i];
    programs_[i].done = program.steps.empty();
    if (posted()) programs_[i].announcer.bind(program, cells_, trial_.conditions.slices, trial_.rounds);
  }
}

void Simulator::run() {
  for (uint32_t i = 0; i < programs_.size(); ++i) events_.add(programs_[i].begin, Event::Kind::begin, i);
  while (!events_.empty()) {
    const Event event = events_.next();
    now_ = event.time;
    handle(event);
  }
}

void Simulator::handle(const Event& event) {
  switch (event.kind) {
    case Event::Kind::begin:
      cause_ = {Cause::Kind::start, 0};
      return wake(event.index);
    case Event::Kind::step_end:
      return end_step(event.index);
    case Event::Kind::port_free:
      return leave(event.index);
    case Event::Kind::arrival:
      return arrive(event.index);
    case Event::Kind::credit:
      cause_ = {Cause::Kind::credit, event.index};
      --connections_[event.detail].under_way;
      return wake(connections_[event.detail].link.sender);
    case Event::Kind::completion:
      cause_ = {Cause::Kind::credit, event.detail};
      return hold(event.index, false);
  }
}

void Simulator::wake(uint32_t index) {
  if (index == Link::nobody) return;
  TimedProgram& program = programs_[index];
  if (now_ < program.begin) return;
  TimedMachine machine(*this, index);
  if (posted()) program.announcer.run(machine, schedule_, program.position);
  if (program.running || program.done) return;
  const Step& step = schedule_.programs[index].steps[program.position.cursor.step];
  if (advance(machine, schedule_, step).wait == Wait::nothing) start(index, step);
}

void Simulator::wake_channel(Rank rank, uint32_t channel) {
  for (uint32_t strand = 0; strand < schedule_.strands; ++strand) {
    wake((channel * schedule_.strands + strand) * static_cast<uint32_t>(schedule_.ranks) + static_cast<uint32_t>(rank));
  }
}

// The step has all that it needs but the processor, which serves its steps in the order in which they come here.
void Simulator::start(uint32_t index, const Step& step) {
  TimedProgram& program = programs_[index];
  const Rank rank = schedule_.programs[index].rank;
  const uint32_t processor = network_.processor(rank);
  const auto number = static_cast<uint32_t>(result_.steps.size());
  StepTime time{index, program.position, now_, 0, cause_};
  if (processor_free_[processor] > now_) {
    time.start = processor_free_[processor];
    time.cause = {Cause::Kind::processor, processor_step_[processor]};
  }
  time.end = time.start + delayed(busy(step, program, rank), identity(Delayed::step, index, program.position, -1));
  processor_free_[processor] = time.end;
  processor_step_[processor] = number;
  program.running = true;
  result_.steps.push_back(time);
  events_.add(time.end, Event::Kind::step_end, number);
}

double Simulator::busy(const Step& step, const TimedProgram& program, Rank rank) const {
  const double size = bytes(step);
  double seconds = network_.costs.step;
  const auto message = [&](uint32_t id, bool moves) {
    const Route& route = connections_[id].route;
    const LinkClass& links = network_.classes[route.link_class];
    seconds += links.overhead + (links.by_processor && moves ? size * route.beta : 0);
  };
  for (const uint32_t id : program.sinks) message(id, !held());
  for (const uint32_t taken : program.taken) message(messages_[taken].connection, held());
  if (step.reduces()) {
    seconds += size * network_.costs.gamma * (step.sources() - 1);
  } else if (step.dst.present()) {
    const bool landed = posted() ? lands(step) : held() && step.from.count != 0;
    seconds += landed ? 0 : size * network_.costs.copy;
  }
  return seconds * factor_[static_cast<size_t>(rank)];
}

void Simulator::end_step(uint32_t number) {
  const StepTime time = result_.steps[number];
  TimedProgram& program = programs_[time.program];
  const Program& steps = schedule_.programs[time.program];
  cause_ = {Cause::Kind::program, number};
  result_.rank_finish[static_cast<size_t>(steps.rank)] = now_;
  program.running = false;
  program.position.next(trial_.conditions.slices, steps.steps.size());
  program.done = program.position.round == trial_.rounds;
  for (const uint32_t message : std::exchange(program.taken, {})) {
    const uint32_t id = messages_[message].connection;
    ++connections_[id].taken;
    result_.messages[message].receiver = number;
    const double known = now_ + network_.classes[connections_[id].route.link_class].alpha;  // to the sender
    events_.add(known, Event::Kind::credit, number, id);
    if (held() && !posted()) events_.add(known, Event::Kind::completion, message, number);
  }
  for (const uint32_t id : std::exchange(program.sinks, {})) send(number, id);
  wake(time.program);
}

std::string Simulator::deadlock() {
  const auto stand = [&](uint32_t p) { return programs_[p].done ? schedule_.programs[p].steps.size() : programs_[p].position.cursor.step; };
  const auto blocked = [&](uint32_t p) {
    TimedMachine machine(*this, p);
    return advance(machine, schedule_, schedule_.programs[p].steps[stand(p)]);
  };
  return stuck(schedule_, 0, static_cast<uint32_t>(programs_.size()), stand, blocked);
}

Simulation Simulator::take_result() {
  for (const double finish : result_.rank_finish) result_.finish = std::max(result_.finish, finish);
  result_.ports = ports_.used();
  result_.path = critical_path(schedule_, result_);
  return std::move(result_);
}

}  // namespace gyre::schedule
