#include "plugin/nccl/run.h"

#include <algorithm>
#include <future>
#include <memory>
#include <span>
#include <thread>

#include "plugin/guard.h"

namespace gyre::plugin::nccl {
namespace {

/// Memory of the host in place of a GPU's, of a send or a receive.
struct Bounce {
  const Operation* operation;
  size_t transfer;  // of its part
  std::unique_ptr<std::byte[]> memory{};

  size_t bytes() const { return operation->transfer.count * size_of(operation->transfer.type); }
  bool sends() const { return operation->transfer.kind == engine::Transfer::Kind::send; }
  Status fill() const { return copy(memory.get(), operation->transfer.data); }
  Status empty() const { return copy(operation->transfer.data, memory.get()); }
  // The stream may be held by then, and the copy must not be left there.
  Status copy(void* to, const void* from) const {
    GYRE_TRY(operation->comm->wait_for(operation->stream, operation->context));
    return cuda::copy(to, from, bytes(), operation->stream, operation->context);
  }
};

/// A communicator's part of a group.
struct Part {
  Shared comm;
  std::vector<const Operation*> collectives;
  std::vector<engine::Transfer> transfers;
  std::vector<Bounce> bounces;
  std::vector<cudaStream_t> streams;  // of what it has on GPU memory, each once; without those that are captured
  cuda::Context context;              // of these
  const char* name;                   // of the first
  std::optional<engine::Request> last;
  Status status;
};

void note_stream(const Operation& operation, Part& part) {
  part.context = operation.context;
  if (std::find(part.streams.begin(), part.streams.end(), operation.stream) == part.streams.end()) part.streams.push_back(operation.stream);
}

std::vector<Part> by_comm(const std::vector<Operation>& operations) {
  std::vector<Part> parts;
  for (const Operation& operation : operations) {
    auto part = std::find_if(parts.begin(), parts.end(), [&](const Part& p) { return p.comm == operation.comm; });
    if (part == parts.end())
      part = parts.insert(parts.end(), Part{operation.comm, {}, {}, {}, {}, operation.context, operation.name, {}, {}});
    if (operation.on_gpu && !operation.captured) note_stream(operation, *part);
    if (operation.call) {
      part->collectives.push_back(&operation);
      continue;
    }
    if (operation.on_gpu) part->bounces.push_back({&operation, part->transfers.size()});
    part->transfers.push_back(operation.transfer);
  }
  return parts;
}

// Of what was not refused: before that a message may be of any size.
void make_bounces(Part& part) {
  for (Bounce& bounce : part.bounces) {
    bounce.memory = std::make_unique_for_overwrite<std::byte[]>(bounce.bytes());
    part.transfers[bounce.transfer].data = bounce.memory.get();
  }
}

engine::Call call_of(const Operation& operation) {
  engine::Call call = *operation.call;
  if (operation.scalar_at != nullptr) call.scalar = engine::scalar_bits(call.type, operation.scalar_at);
  return call;
}

Status give_to_stream(const Operation& operation) {
  return operation.comm->on_gpu()->enqueue(call_of(operation), operation.input, operation.output, operation.stream);
}

Status fill_bounces(const Part& part) {
  for (const Bounce& bounce : part.bounces) {
    if (bounce.sends()) GYRE_TRY(bounce.fill());
  }
  return {};
}
Status empty_bounces(const Part& part) {
  for (const Bounce& bounce : part.bounces) {
    if (!bounce.sends()) GYRE_TRY(bounce.empty());
  }
  return {};
}

// What each of its streams is given from now on comes after what any of them has been given. By NCCL's guide a group is in the order of
// each of its streams.
Status join_streams(const Part& part) {
  if (part.streams.size() < 2) return {};
  cuda::Mark mark(part.context);
  const cudaStream_t first = part.streams.front();
  const std::span others(part.streams.begin() + 1, part.streams.end());
  for (const cudaStream_t other : others) {
    GYRE_TRY(mark.set(other));
    GYRE_TRY(mark.before(first));
  }
  GYRE_TRY(mark.set(first));
  for (const cudaStream_t other : others) GYRE_TRY(mark.before(other));
  return {};
}
void join_all_streams(std::vector<Part>& parts) {
  for (Part& part : parts) {
    if (part.status) part.status = join_streams(part);
  }
}

Status start(Part& part, const Operation& collective) {
  if (collective.on_gpu) return give_to_stream(collective);
  part.last = GYRE_TRY(part.comm->engine().start(call_of(collective), collective.input, collective.output));
  return {};
}

// All transfers of a communicator move together.
Status start_transfers(Part& part) {
  if (part.transfers.empty()) return {};
  GYRE_TRY(fill_bounces(part));
  part.last = GYRE_TRY(part.comm->engine().start(part.transfers));
  return {};
}

// What is alone needs no list of operations in flight.
Status run_alone(const Part& part) {
  engine::Communicator& engine = part.comm->engine();
  if (part.collectives.empty()) {
    GYRE_TRY(fill_bounces(part));
    GYRE_TRY(engine.exchange(part.transfers));
    return empty_bounces(part);
  }
  const Operation& operation = *part.collectives.front();
  if (operation.on_gpu) return give_to_stream(operation);
  return engine.run(call_of(operation), operation.input, operation.output);
}

// In rounds, whatever order the program has: a long group's collectives of one rank would fill its stream, and the thread would wait in it
// for other ranks that it has not come to.
void start_collectives(std::vector<Part>& parts) {
  bool more = true;
  for (size_t k = 0; more; ++k) {
    more = false;
    for (Part& part : parts) {
      if (k >= part.collectives.size()) continue;
      more = true;
      if (part.status) part.status = start(part, *part.collectives[k]);
    }
  }
}

// The operations of all communicators are under way before one is waited for: another rank of theirs may be this very thread. So are their
// collectives before a stream is waited for by what a send is to carry.
void run_together(std::vector<Part>& parts) {
  start_collectives(parts);
  for (Part& part : parts) {
    if (part.status) part.status = start_transfers(part);
  }
  for (Part& part : parts) {
    if (!part.last) continue;
    const Status ended = part.comm->engine().wait(*part.last);  // what was begun has the program's memory until it ends
    if (part.status) part.status = ended;
    if (part.status) part.status = empty_bounces(part);
  }
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
  std::vector<Part> parts = by_comm(operations);
  if (refuse(parts)) return parts;
  std::for_each(parts.begin(), parts.end(), make_bounces);
  join_all_streams(parts);
  if (parts.size() > 1 || parts[0].collectives.size() + (parts[0].transfers.empty() ? 0 : 1) > 1)
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
