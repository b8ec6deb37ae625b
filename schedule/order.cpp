#include "schedule/order.h"

#include <fmt/format.h>

#include "schedule/accesses.h"
#include "schedule/flow.h"
#include "schedule/landings.h"
#include "schedule/unbounded.h"

namespace gyre::schedule {
namespace {

// The Machine (run.h) that keeps clocks in place of data. Of one channel; its programs are numbered strand * ranks + rank.
class OrderMachine : public Unbounded<OrderMachine> {
 public:
  OrderMachine(const Schedule& schedule, const Wiring& wiring, Mode mode, bool in_place, uint32_t channel)
      : Unbounded(schedule, wiring),
        mode_(mode),
        programs_(schedule.strands * static_cast<uint32_t>(schedule.ranks)),
        base_(channel * programs_),
        cells_(schedule.layout(), schedule.scratch, in_place),
        clocks_(programs_, Clock(programs_)),
        messages_(wiring.messages()),
        accesses_(schedule, cells_.count(), wiring.messages()) {
    if (mode != Mode::posted) return;
    landings_.resize(programs_);
    for (uint32_t p = 0; p < programs_; ++p) landings_[p].bind(schedule.programs[base_ + p], cells_);
  }

  std::string run() {
    play(base_, base_ + programs_);
    return fault_;
  }

  // For advance(), of the program that runs.
  void take(Rank peer) {
    const uint32_t message = next_from(peer);
    arrived_with_ = pool_[messages_[message]];
    pool_.free(messages_[message]);
    join(clocks_[number()], arrived_with_);
    accesses_.take(message, step_);
  }
  void take(const Chunks&) {}
  void put(const Chunks&) {}
  void put(Rank) {}
  void finish(const Step& step) {
    Clock& clock = clocks_[number()];
    clock[number()] = step_ + 1;
    each_cell(step.src, [&](size_t cell, uint32_t chunk) {
      if (const auto conflict = accesses_.read(number(), step_, cell, clock)) fault("reads", step.src, chunk, *conflict);
    });
    const bool ahead = mode_ == Mode::posted && lands(step);
    if (ahead) landings_[number()].join_announced(step_, arrived_with_);
    each_cell(step.dst, [&](size_t cell, uint32_t chunk) {
      const auto conflict = accesses_.write(number(), step_, cell, ahead ? arrived_with_ : clock);
      if (conflict) fault("writes", step.dst, chunk, *conflict);
    });
    for (const Rank peer : schedule_.peers(step.to)) send(step, peer);
    if (mode_ == Mode::posted) landings_[number()].ran(step_, clock);
  }

 private:
  uint32_t number() const { return running_ - base_; }  // of the program that runs
  void send(const Step& step, Rank peer) {
    const uint32_t message = next_to(peer);
    messages_[message] = pool_.copy_of(clocks_[number()]);
    if (mode_ == Mode::buffered) return;
    const uint32_t receiver = wiring_.links()[outgoing(peer)].receiver - base_;
    each_cell(lies_in(step), [&](size_t cell, uint32_t) { accesses_.send(cell, {message, number(), step_, receiver}); });
  }
  template <class F>
  void each_cell(const Chunks& chunks, F f) {
    if (!chunks.present()) return;
    const size_t first = cells_.of(program_->rank, chunks.buffer, chunks.first);
    for (uint32_t i = 0; i < chunks.count; ++i) f(first + size_t{i} * chunks.stride, chunks[i]);
  }
  void fault(std::string_view verb, const Chunks& chunks, uint32_t chunk, const Accesses::Conflict& conflict) {
    if (!fault_.empty()) return;
    constexpr std::string_view buffers[] = {"input", "output", "scratch"};
    constexpr std::string_view kinds[] = {"is read by", "is written by", "is under way, sent from there by"};
    fault_ = fmt::format("{} {} {} chunk {} while it {} strand {} step {}: no message orders them", where(schedule_, *program_, step_),
                         verb, buffers[static_cast<size_t>(chunks.buffer)], chunk, kinds[static_cast<size_t>(conflict.kind)],
                         schedule_.programs[base_ + conflict.program].strand, conflict.step);
  }

  Mode mode_;
  uint32_t programs_;
  uint32_t base_;  // of them, in the schedule
  Cells cells_;
  std::vector<Clock> clocks_;       // [program]
  std::vector<Landings> landings_;  // [program], of posted mode
  std::vector<uint32_t> messages_;  // [message]: its clock in the pool
  ClockPool pool_;
  Accesses accesses_;
  Clock arrived_with_;  // what the sender of the running step's last source knew
};

}  // namespace

std::string unordered(const Schedule& schedule, const Wiring& wiring, Mode mode, bool in_place) {
  if (schedule.strands == 1) return {};
  for (uint32_t c = 0; c < schedule.channels; ++c) {
    if (std::string fault = OrderMachine(schedule, wiring, mode, in_place, c).run(); !fault.empty()) return fault;
  }
  return {};
}

}  // namespace gyre::schedule
