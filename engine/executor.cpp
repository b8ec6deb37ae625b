#include "engine/executor.h"

#include <fmt/format.h>

#include "base/log.h"
#include "schedule/print.h"

namespace gyre::engine {
namespace {

using namespace std::chrono_literals;

// Ranks that have waited so long tell rank 0 in which call they are, so that calls that differ without ever meeting are found.
constexpr auto stall_time = 1s;
// How long a verdict of rank 0, or word of a rank's death, can take to get here.
constexpr auto verdict_time = 3s;
// Not an error: the peer may be computing, or stopped by a debugger. But somebody may be looking at the log.
constexpr auto long_time = 30s;

std::string in_words(const schedule::Blocked& blocked) {
  switch (blocked.wait) {
    case schedule::Wait::arrival:
      return fmt::format("for a message from rank {}", blocked.peer);
    case schedule::Wait::credit:
      return fmt::format("for room to send to rank {}", blocked.peer);
    default:
      return "for its own sends to complete";
  }
}

}  // namespace

Executor::Executor(transport::Bootstrap& bootstrap, std::vector<transport::Worker*> workers, std::vector<HostMachine> machines,
                   bool crowded)
    : bootstrap_(bootstrap), workers_(std::move(workers)), machines_(std::move(machines)), waiter_(crowded) {}

Status Executor::run(const Plan& plan, uint64_t call, const void* input, void* output) {
  // The number is part of the word, so that messages of two equal calls are not taken for each other when one rank has skipped one.
  const uint64_t word = plan.hash() + call * 0x9e3779b97f4a7c15;
  for (HostMachine& machine : machines_) machine.bind(plan, word, input, output);
  described_ = warned_ = false;
  waiter_.reset();
  for (;;) {
    bool moved = false;
    bool done = true;
    for (HostMachine& machine : machines_) {
      moved |= machine.run();
      done &= machine.done();
    }
    if (done) return {};
    if (moved) {
      waiter_.reset();
      progress();
    } else {
      GYRE_TRY(wait(plan, call));
    }
  }
}

void Executor::progress() {
  for (transport::Worker* worker : workers_) worker->progress();
}

Status Executor::wait(const Plan& plan, uint64_t call) {
  progress();
  for (const HostMachine& machine : machines_) {
    if (machine.mismatched() >= 0) return settle(plan, call);
  }
  if (bootstrap_.attention()) {
    if (const Error* failure = bootstrap_.failure()) return explain(*failure, plan, call);
    if (bootstrap_.asked()) return settle(plan, call);
  }
  return waiter_.pause() ? stalled(plan, call) : Status();
}

// Looked at now and then by a rank that has been waiting.
Status Executor::stalled(const Plan& plan, uint64_t call) {
  for (transport::Worker* worker : workers_) {
    const Error* broken = worker->failure();
    if (broken == nullptr) continue;
    // A connection usually breaks because a rank is gone, and the watch over ranks knows more about that.
    const Error* failure = bootstrap_.wait_for_failure(verdict_time);
    if (failure == nullptr) bootstrap_.fail(*broken);
    return explain(failure != nullptr ? *failure : *broken, plan, call);
  }
  if (waiter_.waited() < stall_time) return {};
  const schedule::Blocked blocked = waiting().blocked();
  if (blocked.peer >= 0 && bootstrap_.left(blocked.peer)) {
    const Error left{Code::remote, fmt::format("rank {} has left", blocked.peer)};
    bootstrap_.fail(left);
    return explain(left, plan, call);
  }
  if (!described_) bootstrap_.describe(call, plan.hash(), fmt::format("call={} {}", call, plan.text()), false);
  described_ = true;
  if (waiter_.waited() > long_time && !warned_) {
    warned_ = true;
    log::warn("{}", explain({Code::timeout, "nothing has moved for a long time"}, plan, call).what);
  }
  return {};
}

// Calls differ, or rank 0 asks because they may: say in which call we are and wait for the verdict.
Error Executor::settle(const Plan& plan, uint64_t call) {
  bootstrap_.describe(call, plan.hash(), fmt::format("call={} {}", call, plan.text()), !bootstrap_.asked());
  const Error* verdict = bootstrap_.wait_for_failure(verdict_time);
  if (verdict != nullptr) return explain(*verdict, plan, call);
  const Error unknown{Code::invalid_usage, "a message of another call arrived, and rank 0 did not say whose"};
  bootstrap_.fail(unknown);
  return explain(unknown, plan, call);
}

const HostMachine& Executor::waiting() const {
  for (const HostMachine& machine : machines_) {
    if (machine.step() != nullptr) return machine;
  }
  return machines_.front();
}

Error Executor::explain(const Error& cause, const Plan& plan, uint64_t call) {
  const HostMachine& machine = waiting();
  const schedule::Step* step = machine.step();
  const std::string where = step == nullptr
                                ? "for its last sends to complete"
                                : fmt::format("{} in step {} ({}) of round {}", in_words(machine.blocked()), machine.position().cursor.step,
                                              schedule::describe(plan.schedule(), *step), machine.position().round);
  return Error{cause.code,
               fmt::format("{}; rank {} was in call {}, {}, waiting {}", cause.what, bootstrap_.rank(), call, plan.text(), where)};
}

}  // namespace gyre::engine
