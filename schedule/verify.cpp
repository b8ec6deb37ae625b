#include "schedule/verify.h"

#include <fmt/format.h>

#include "schedule/verify_machine.h"

namespace gyre::schedule {
namespace {

using Id = Expressions::Id;

// What can't even be tried: ranks and chunks that do not exist, and a peer that is named twice on one side of a step.
std::string malformed(const Schedule& schedule) {
  const auto chunks_exist = [&](const Chunks& chunks) {
    return !chunks.present() || (chunks[chunks.count - 1] < schedule.chunks && (chunks.count == 1 || chunks.stride != 0));
  };
  const auto peers_exist = [&](Peers list, Rank own) {
    std::vector<bool> named(static_cast<size_t>(schedule.ranks));
    for (const Rank peer : schedule.peers(list)) {
      if (peer < 0 || peer >= schedule.ranks || peer == own || named[static_cast<size_t>(peer)]) return false;
      named[static_cast<size_t>(peer)] = true;
    }
    return true;
  };
  // Messages order what one channel does; nothing orders two channels, so each chunk belongs to one.
  constexpr uint32_t nobody = UINT32_MAX;
  std::vector<uint32_t> owners(schedule.chunks, nobody);
  const auto owned = [&](const Chunks& chunks, uint32_t channel) {
    for (uint32_t i = 0; i < chunks.count; ++i) {
      uint32_t& owner = owners[chunks[i]];
      if (owner != nobody && owner != channel) return false;
      owner = channel;
    }
    return true;
  };
  for (const Program& program : schedule.programs) {
    for (size_t i = 0; i < program.steps.size(); ++i) {
      const Step& step = program.steps[i];
      std::string_view wrong;
      if (!chunks_exist(step.src) || !chunks_exist(step.dst)) wrong = "a chunk that does not exist, or one twice";
      if (wrong.empty() && !(owned(step.src, program.channel) && owned(step.dst, program.channel))) wrong = "a chunk of another channel";
      if (!peers_exist(step.from, program.rank) || !peers_exist(step.to, program.rank))
        wrong = "itself, a rank that does not exist, or one twice";
      if (!wrong.empty()) return fmt::format("rank {} channel {} step {} names {}", program.rank, program.channel, i, wrong);
    }
  }
  return {};
}

Error broken(const Job& job, const std::string& what) {
  return Error{Code::internal,
               fmt::format("schedule {} for {} ranks, {} channels ({} credits, {} slices{}{}): {}", job.schedule.family, job.schedule.ranks,
                           job.schedule.channels, job.conditions.credits, job.conditions.slices,
                           job.conditions.in_place ? ", in place" : "", job.conditions.mode == Mode::posted ? ", posted" : "", what)};
}

std::string stuck(const Job& job, const std::vector<VerifyMachine>& machines, const std::vector<Blocked>& blocked) {
  std::string text = "deadlock:";
  constexpr std::string_view waits[] = {"nothing", "a message from", "a credit to", "the completion of its own send"};
  int shown = 0;
  for (size_t i = 0; i < machines.size(); ++i) {
    const Program& program = job.schedule.programs[i];
    if (machines[i].done() || ++shown > 4) continue;
    text += fmt::format(" rank {} step {} ({}) waits for {}", program.rank, machines[i].cursor.step,
                        operation(program.steps[machines[i].cursor.step]), waits[static_cast<size_t>(blocked[i].wait)]);
    text += blocked[i].peer >= 0 ? fmt::format(" rank {};", blocked[i].peer) : ";";
  }
  return text;
}

// Every rank's output at the end.
std::string wrong_result(Job& job) {
  const uint32_t slices = job.conditions.slices;
  for (uint32_t chunk = 0; chunk < job.schedule.chunks; ++chunk) {
    const Id reference = job.memory[job.at(0, Buffer::output, chunk, 0)];
    for (Rank r = 0; r < job.schedule.ranks; ++r) {
      for (uint32_t slice = 0; slice < slices; ++slice) {
        const Id id = job.memory[job.at(r, Buffer::output, chunk, slice)];
        if (id == Expressions::none) return fmt::format("rank {} never writes output chunk {}", r, chunk);
        if (!job.expressions.complete(id)) {
          return fmt::format("output chunk {} on rank {} lacks rank {}'s part", chunk, r, job.expressions.first_missing(id));
        }
        if (slice == 0 && id != reference) {
          return fmt::format("output chunk {} is {} on rank 0 and {} on rank {}: not the same bits", chunk, job.expressions.text(reference),
                             job.expressions.text(id), r);
        }
      }
    }
  }
  for (const auto& [key, connection] : job.connections) {
    if (!connection.messages.empty())
      return fmt::format("{} messages were never received (connection {})", connection.messages.size(), key);
  }
  return {};
}

}  // namespace

Result<Proof> verify(const Schedule& schedule, const Conditions& conditions) {
  Job job(schedule, conditions);
  if (const std::string wrong = malformed(schedule); !wrong.empty()) return broken(job, wrong);
  std::vector<VerifyMachine> machines;
  for (const Program& program : schedule.programs) machines.emplace_back(job, program);
  std::vector<Blocked> blocked(machines.size());
  std::vector<std::vector<Id>> results(machines.size());

  for (bool moved = true; moved;) {
    moved = false;
    for (size_t i = 0; i < machines.size(); ++i) {
      VerifyMachine& machine = machines[i];
      const auto& steps = schedule.programs[i].steps;
      moved = machine.announce() || moved;
      while (!machine.done()) {
        const Step& step = steps[machine.cursor.step];
        blocked[i] = advance(machine, schedule, step);
        if (blocked[i].wait != Wait::nothing) break;
        if (!job.fault.empty()) return broken(job, job.fault);
        if (machine.cursor.slice == 0) results[i].push_back(step.reduces() ? machine.result : Expressions::none);
        machine.cursor.next(conditions.slices);
        machine.announce();
        moved = true;
      }
    }
  }
  for (size_t i = 0; i < machines.size(); ++i) {
    if (!machines[i].done()) return broken(job, stuck(job, machines, blocked));
  }
  if (const std::string wrong = wrong_result(job); !wrong.empty()) return broken(job, wrong);

  Proof proof;
  for (const auto& program : results) {
    auto& facts = proof.facts.emplace_back();
    for (const Id id : program) {
      facts.push_back(id == Expressions::none ? Fact{} : Fact{job.expressions.complete(id), job.expressions.replicated(id)});
    }
  }
  return proof;
}

}  // namespace gyre::schedule
