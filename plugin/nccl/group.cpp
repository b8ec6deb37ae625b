#include "plugin/nccl/group.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <exception>
#include <map>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>

#include "plugin/nccl/run.h"

namespace gyre::plugin::nccl {
namespace {

struct Group {
  int depth = 0;
  ncclResult_t spoiled = ncclSuccess;
  std::string why;
  std::vector<Operation> operations;
  std::vector<Task> tasks;
};
thread_local Group group;

template <class Work>
std::vector<Shared> comms_of(const std::vector<Work>& work) {
  std::vector<Shared> comms;
  for (const Work& one : work) {
    if (std::find(comms.begin(), comms.end(), one.comm) == comms.end()) comms.push_back(one.comm);
  }
  return comms;
}

Result<bool> all_block(const std::vector<Shared>& comms) {
  const auto blocking = std::count_if(comms.begin(), comms.end(), [](const Shared& comm) { return comm->settings.blocking; });
  if (blocking != 0 && static_cast<size_t>(blocking) != comms.size())
    return Error{Code::invalid_argument, "a group has blocking and non-blocking communicators"};
  return blocking != 0;
}

// All or none of them have begun a call.
Status begin_calls(const std::vector<Shared>& comms, bool in_background) {
  for (size_t i = 0; i < comms.size(); ++i) {
    if (comms[i]->begin_call(in_background)) continue;
    for (size_t j = 0; j < i; ++j) comms[j]->end_call(ncclSuccess);
    return Error{Code::invalid_usage, "another call is under way on the communicator, or it was aborted"};
  }
  return {};
}

// `run` does the work, never throws, and tells each communicator what came of its part.
template <class Work>
Result<ncclResult_t> launch(const std::vector<Work>& work, bool at_once = false) {
  const std::vector<Shared> comms = comms_of(work);
  const bool blocking = GYRE_TRY(all_block(comms)) || at_once;
  GYRE_TRY(begin_calls(comms, !blocking));
  if (blocking) return run(work);
  try {
    if constexpr (std::is_same_v<Work, Task>) std::for_each(work.begin(), work.end(), [](const Task& task) { task.announce(); });
    std::thread([work] { run(work); }).detach();
  } catch (const std::exception& error) {
    for (const Shared& comm : comms) comm->end_call(ncclSystemError);
    return Error{Code::system, fmt::format("a thread for a non-blocking call: {}", error.what())};
  }
  return ncclInProgress;
}

/// A collective that this rank need not tell the others of: on GPUs, as in NCCL, each passes over what has no elements.
bool is_nothing(const Operation& operation) {
  return operation.call && operation.call->count == 0 && (operation.captured || operation.comm->on_gpu() != nullptr);
}

// What is captured is run later, by the GPU's own doing.
Status refuse_capture(const Operation& operation) {
  if (!operation.call)
    return Error{Code::invalid_usage,
                 "a send or receive can't be captured in a CUDA graph: gyre carries it by the host, when it is called"};
  if (!operation.on_gpu)
    return Error{Code::invalid_usage, "a collective on memory of the host can't be captured in a CUDA graph: it is run when it is called"};
  if (operation.scalar_at != nullptr)
    return Error{Code::invalid_usage,
                 "a pre-multiplied sum whose scalar is read from memory can't be captured in a CUDA graph: make it with "
                 "ncclScalarHostImmediate"};
  return {};
}

// Of a communicator all transfers of a group move together, by the engine of its calls on memory of the host.
void choose_carried(std::vector<Operation>& together) {
  struct Has {
    size_t transfers = 0;
    bool all_on_gpu = true;
  };
  std::map<const Comm*, Has> by_comm;
  for (const Operation& operation : together) {
    Has& has = by_comm[operation.comm.get()];
    const bool is_empty = !operation.call && operation.transfer.count == 0;
    has.all_on_gpu = has.all_on_gpu && (operation.on_gpu || is_empty);
    if (!operation.call) ++has.transfers;
  }
  for (Operation& operation : together) {
    const Has& has = by_comm[operation.comm.get()];
    const OnGpu* const gpu = operation.comm->on_gpu();
    operation.carried = !operation.call && gpu != nullptr && has.all_on_gpu && has.transfers <= gpu->most_carried();
  }
}

// A collective on GPU memory waits in its stream, and so does what is carried; its scalar is read now, when all that its communicator's
// streams of the group were given has ended.
Status make_ready(Operation& operation, const std::vector<Operation>& together) {
  if (operation.captured) return refuse_capture(operation);
  if (operation.carried || (operation.on_gpu && operation.call && operation.scalar_at == nullptr)) return {};
  for (const Operation& other : together) {
    const bool counts = &other == &operation || (operation.scalar_at != nullptr && other.comm == operation.comm && !other.captured);
    if (counts) GYRE_TRY(other.comm->wait_for(other.stream, other.context));
  }
  if (!operation.on_gpu || operation.scalar_at == nullptr) return {};
  std::array<std::byte, sizeof(uint64_t)> scalar{};
  GYRE_TRY(cuda::copy(scalar.data(), operation.scalar_at, size_of(operation.call->type), operation.stream, operation.context));
  operation.call->scalar = engine::scalar_bits(operation.call->type, scalar.data());
  operation.scalar_at = nullptr;
  return {};
}

// What a capture is given must be in it when this returns: it may end then. The per-thread stream is another one in another thread. Neither
// waits for other ranks, but where what was to be carried finds no room.
bool must_be_here(const Operation& operation) {
  const bool by_stream = operation.carried || (operation.on_gpu && operation.call);
  return operation.captured || (by_stream && operation.stream == cuda::per_thread);
}

Result<ncclResult_t> launch_operations(std::vector<Operation> operations) {
  for (Operation& operation : operations) operation.captured = GYRE_TRY(cuda::captures(operation.stream, operation.context));
  std::erase_if(operations, is_nothing);
  if (operations.empty()) return ncclSuccess;
  choose_carried(operations);
  for (Operation& operation : operations) GYRE_TRY(make_ready(operation, operations));
  return launch(operations, std::any_of(operations.begin(), operations.end(), must_be_here));
}

// Of the outermost end; empty: an inner one.
Result<std::optional<Group>> take_group() {
  if (group.depth == 0) return Error{Code::invalid_usage, "there was no ncclGroupStart"};
  if (--group.depth > 0) return std::optional<Group>();
  std::optional<Group> taken = std::exchange(group, Group());
  if (taken->spoiled != ncclSuccess)
    return Error{static_cast<Code>(taken->spoiled), fmt::format("nothing of this group is done, since a call failed: {}", taken->why)};
  return taken;
}

}  // namespace

void spoil_group(ncclResult_t result) noexcept {
  if (group.depth == 0 || group.spoiled != ncclSuccess) return;
  group.spoiled = result;
  try {
    group.why = last_error();
  } catch (const std::bad_alloc&) {
    return;  // no memory for the reason
  }
}

Result<ncclResult_t> perform(std::vector<Operation> operations) { return launch_operations(std::move(operations)); }
Result<ncclResult_t> perform(Task task) { return launch(std::vector<Task>{std::move(task)}); }

Result<ncclResult_t> submit(Operation operation) {
  if (group.depth == 0) return launch_operations({std::move(operation)});
  group.operations.push_back(std::move(operation));
  return ncclSuccess;
}

Result<ncclResult_t> submit(std::vector<Task> tasks) {
  if (group.depth == 0) return launch(tasks);
  group.tasks.insert(group.tasks.end(), std::make_move_iterator(tasks.begin()), std::make_move_iterator(tasks.end()));
  return ncclSuccess;
}

void start_group() noexcept { ++group.depth; }

Result<ncclResult_t> end_group() {
  const auto ended = GYRE_TRY(take_group());
  if (!ended || (ended->operations.empty() && ended->tasks.empty())) return ncclSuccess;
  if (!ended->operations.empty() && !ended->tasks.empty())
    return Error{Code::invalid_usage, "a group makes communicators, or runs operations, not both"};
  return ended->tasks.empty() ? launch_operations(ended->operations) : launch(ended->tasks);
}

Result<std::optional<double>> simulate_group() {
  const auto ended = GYRE_TRY(take_group());
  if (!ended) return std::optional<double>();
  double us = 0;
  for (const Operation& operation : ended->operations) {
    if (!operation.call) return std::optional<double>();
    const auto predicted = operation.comm->engine().predicted_us(*operation.call);
    if (!predicted) return std::optional<double>();
    us += *predicted;
  }
  return std::optional<double>(us);
}

}  // namespace gyre::plugin::nccl
