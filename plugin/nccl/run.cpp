#include "plugin/nccl/run.h"

#include <algorithm>
#include <chrono>
#include <future>
#include <list>
#include <thread>

#include "plugin/guard.h"
#include "plugin/nccl/held_up.h"
#include "plugin/nccl/part.h"

namespace gyre::plugin::nccl {
namespace {

engine::Call call_of(const Operation& operation) {
  engine::Call call = *operation.call;
  if (operation.scalar_at != nullptr) call.scalar = engine::scalar_bits(call.type, operation.scalar_at);
  return call;
}

Status give_to_stream(const Operation& operation) {
  return operation.comm->on_gpu()->enqueue(call_of(operation), operation.input, operation.output, operation.stream);
}

// Its streams have been joined.
Status carry(const Part& part) { return part.comm->on_gpu()->carry(part.comm->engine(), part.transfers, part.streams.front()); }

void join_all_streams(std::vector<Part>& parts) {
  for (Part& part : parts) {
    if (part.status) part.status = part.join_streams();
  }
}

// In rounds, whatever order the program has: a long group's collectives of one rank would fill its stream, and the thread would wait in it
// for other ranks that it has not come to.
void give_collectives(std::vector<Part>& parts) {
  bool more = true;
  for (size_t k = 0; more; ++k) {
    more = false;
    for (Part& part : parts) {
      if (k >= part.on_gpu.size()) continue;
      more = true;
      if (part.status) part.status = give_to_stream(*part.on_gpu[k]);
    }
  }
}

void give_to_streams(std::vector<Part>& parts) {
  give_collectives(parts);
  for (Part& part : parts) {
    if (part.status && part.carried) part.status = carry(part);
  }
}

Status start_collectives(Part& part) {
  for (const Operation* each : part.on_host) part.last = GYRE_TRY(part.comm->engine().start(call_of(*each), each->input, each->output));
  return {};
}

// All transfers of a communicator move together.
Status start_transfers(Part& part) {
  if (part.transfers.empty() || part.carried) return {};
  GYRE_TRY(part.fill_bounces());
  part.last = GYRE_TRY(part.comm->engine().start(part.transfers));
  return {};
}

void start(const std::vector<Part*>& parts) {
  for (Part* part : parts) {
    if (part->status) part->status = start_collectives(*part);
  }
  for (Part* part : parts) {
    if (part->status) part->status = start_transfers(*part);
  }
}

// An engine may carry what calls before have given, and that may wait for another part of this very group, here or on another rank.
void start_as_engines_are_free(std::vector<Part>& parts) {
  constexpr std::chrono::microseconds nap{50};
  struct Waiting {
    Part* part;
    HeldUp held_up;
  };
  std::list<Waiting> waiting;
  for (Part& part : parts) {
    if (part.status && part.needs_engine()) waiting.push_back({&part, HeldUp(*part.comm)});
  }
  while (!waiting.empty()) {
    std::vector<Part*> free;
    waiting.remove_if([&](Waiting& each) {
      const auto is_free = each.part->comm->engine_free();
      if (!is_free) return each.part->status = is_free.error(), true;
      if (!*is_free) return each.held_up.look(), false;
      return free.push_back(each.part), true;
    });
    start(free);
    if (free.empty() && !engine::InFlight::move_others()) std::this_thread::sleep_for(nap);
  }
}

// The operations of all communicators are under way before one is waited for: another rank of theirs may be this very thread. So is what
// streams are given before a stream is waited for by what a send is to carry.
void run_together(std::vector<Part>& parts) {
  give_to_streams(parts);
  start_as_engines_are_free(parts);
  for (Part& part : parts) {
    if (!part.last) continue;
    const Status ended = part.comm->engine().wait(*part.last);  // what was begun has the program's memory until it ends
    if (part.status) part.status = ended;
    if (part.status) part.status = part.empty_bounces();
  }
}

// What is alone needs no list of operations in flight.
Status run_alone(const Part& part) {
  if (part.carried) return carry(part);
  if (!part.on_gpu.empty()) return give_to_stream(*part.on_gpu.front());
  GYRE_TRY(part.comm->wait_for_engine());
  engine::Communicator& engine = part.comm->engine();
  if (!part.on_host.empty()) {
    const Operation& operation = *part.on_host.front();
    return engine.run(call_of(operation), operation.input, operation.output);
  }
  GYRE_TRY(part.fill_bounces());
  GYRE_TRY(engine.exchange(part.transfers));
  return part.empty_bounces();
}

// Of a group by itself: nothing is begun then.
bool refuse(std::vector<Part>& parts) {
  for (Part& part : parts) {
    auto refusal = part.comm->engine().wrong_group(part.transfers);
    if (!refusal) continue;
    for (Part& each : parts) each.status = *refusal;
    return true;
  }
  return false;
}

std::vector<Part> parts_run(const std::vector<Operation>& operations) {
  std::vector<Part> parts = parts_of(operations);
  if (refuse(parts)) return parts;
  for (Part& part : parts) part.make_room();
  join_all_streams(parts);
  if (parts.size() > 1 || !parts[0].is_one())
    run_together(parts);
  else if (parts[0].status)
    parts[0].status = run_alone(parts[0]);
  join_all_streams(parts);
  return parts;
}

using Chain = std::vector<const Task*>;

std::vector<Chain> chains_of(const std::vector<Task>& tasks) {
  std::vector<Chain> chains;
  for (const Task& task : tasks) {
    auto chain = std::find_if(chains.begin(), chains.end(), [&](const Chain& c) { return c.front()->comm == task.comm; });
    (chain == chains.end() ? chains.emplace_back() : *chain).push_back(&task);
  }
  return chains;
}

ncclResult_t run_chain(const Chain& chain) noexcept {
  ncclResult_t result = ncclSuccess;
  for (size_t i = 0; i < chain.size() && result == ncclSuccess; ++i) result = guard(chain[i]->name, chain[i]->run);
  chain.front()->comm->end_call(result);
  return result;
}

// Each chain by a thread of its own, since all ranks of a job may be this one's; where one thread can't be had none begins.
std::vector<ncclResult_t> run_chains(const std::vector<Chain>& chains) {
  std::vector<ncclResult_t> results(chains.size(), ncclSystemError);
  std::promise<bool> gate;
  const std::shared_future<bool> opens = gate.get_future().share();
  std::vector<std::jthread> threads;
  try {
    for (size_t i = 1; i < chains.size(); ++i) {
      threads.emplace_back([&, i] {
        if (opens.get()) results[i] = run_chain(chains[i]);
      });
    }
  } catch (...) {
    gate.set_value(false);
    throw;
  }
  gate.set_value(true);
  results[0] = run_chain(chains[0]);
  threads.clear();  // joins
  return results;
}

// A communicator's call ends once, since the next that ends may be another thread's.
template <class Work>
ncclResult_t give_up(const std::vector<Work>& work, ncclResult_t result) noexcept {
  for (auto one = work.begin(); one != work.end(); ++one) {
    if (std::none_of(work.begin(), one, [&](const Work& before) { return before.comm == one->comm; })) one->comm->end_call(result);
  }
  return result;
}

}  // namespace

ncclResult_t run(const std::vector<Operation>& operations) noexcept {
  std::vector<Part> parts;
  const ncclResult_t failed = guard("ncclGroupEnd", [&]() -> Status {
    parts = parts_run(operations);
    return {};
  });
  if (failed != ncclSuccess) return give_up(operations, failed);
  ncclResult_t first = ncclSuccess;
  for (const Part& part : parts) {
    const ncclResult_t result = guard(part.name, [&] { return part.status; });
    part.comm->end_call(result);
    if (first == ncclSuccess) first = result;
  }
  return first;
}

ncclResult_t run(const std::vector<Task>& tasks) noexcept {
  std::vector<ncclResult_t> results;
  const ncclResult_t failed = guard("ncclGroupEnd", [&]() -> Status {
    results = run_chains(chains_of(tasks));
    return {};
  });
  if (failed != ncclSuccess) return give_up(tasks, failed);
  const auto wrong = std::find_if(results.begin(), results.end(), [](ncclResult_t result) { return result != ncclSuccess; });
  return wrong == results.end() ? ncclSuccess : *wrong;
}

}  // namespace gyre::plugin::nccl
